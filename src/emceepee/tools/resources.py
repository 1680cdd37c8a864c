"""Tools for the backends' resources."""

from pydantic import Field

from emceepee.backends.catalog import Kind
from emceepee.backends.connection import Connection
from emceepee.backends.spec import RESERVED_NAME
from emceepee.errors import Unsupported
from emceepee.json_types import JsonObject
from emceepee.sessions.listing import Listing, list_everywhere
from emceepee.sessions.session import Session
from emceepee.state.task import Task
from emceepee.tools.declaration import AnyServer, Caller, Outcome, Params, ServerName, tool
from emceepee.tools.execution import Timed, seconds
from emceepee.tools.heartbeat import kept_awake
from emceepee.tools.hints import CORE, READS, SETS, found_by
from emceepee.tools.own_resources import LISTED, read_own_resource
from emceepee.tools.paging import Paged, page
from emceepee.tools.promotion import promoted


class ListOf(Paged):
    """Entries of one server, or of all."""

    server: AnyServer = None


class ReadResource(Timed):
    """One resource."""

    server: str = Field(description="Server name; emceepee for its own")
    uri: str = Field(min_length=1, description="From list_resources or a template")


@tool(title="List servers' resources", effect=READS, load=found_by("MCP resources files documents"))
async def list_resources(params: ListOf, session: Session) -> JsonObject:
    """List servers' resources, for read_resource."""
    if params.server == RESERVED_NAME:
        return page("resources", Listing([{"server": RESERVED_NAME, **entry} for entry in LISTED]), params)
    return await list_kind(Kind.RESOURCES, params, session)


@tool(title="List servers' resource templates", effect=READS, load=found_by("MCP resource URI templates"))
async def list_resource_templates(params: ListOf, session: Session) -> JsonObject:
    """List servers' resource templates: URIs to fill in for read_resource."""
    return await list_kind(Kind.TEMPLATES, params, session)


@tool(title="Read a resource", effect=READS, load=CORE)
async def read_resource(params: ReadResource, session: Session, caller: Caller) -> Outcome:
    """Read a resource, text or binary; a slow one becomes a task."""
    if params.server == RESERVED_NAME:
        return read_own_resource(params.uri)
    with kept_awake(caller, session.clock) as on_progress:
        result = await session.call(
            params.server,
            "resources/read",
            {"uri": params.uri},
            tool="read_resource",
            arguments={"uri": params.uri},
            timeout=seconds(params.timeout_ms),
            on_progress=on_progress,
            on_call=caller.on_call,
        )
    return promoted(result, session) if isinstance(result, Task) else result


class OneResource(Params):
    """A resource to follow."""

    server: ServerName
    uri: str = Field(min_length=1, description="The resource")


@tool(title="Follow a resource", effect=SETS, load=found_by("watch MCP resource changes"))
async def subscribe_resource(params: OneResource, session: Session) -> JsonObject:
    """Hear of changes to a resource: each is an event (await_activity)."""
    await (await _subscribable(params.server, session)).subscribe(params.uri)
    return {"subscribed": params.uri}


@tool(title="Stop following a resource", effect=SETS, load=found_by("unwatch MCP resource"))
async def unsubscribe_resource(params: OneResource, session: Session) -> JsonObject:
    """No longer hear of changes to a resource."""
    await session.connection(params.server).unsubscribe(params.uri)
    return {"unsubscribed": params.uri}


async def list_kind(kind: Kind, params: ListOf, session: Session) -> JsonObject:
    """One kind of entry over the servers asked for."""
    connections = session.connections if params.server is None else [session.connection(params.server)]
    return page(
        kind.key, await list_everywhere(connections, kind, patience=session.limits.list_patience_seconds), params
    )


async def _subscribable(server: str, session: Session) -> Connection:
    connection = session.connection(server)
    resources = (await connection.ready()).facts.capabilities.get("resources")
    if not (isinstance(resources, dict) and resources.get("subscribe")):
        raise Unsupported(f'Server "{server}" offers no subscriptions to resources.', details={"server": server})
    return connection
