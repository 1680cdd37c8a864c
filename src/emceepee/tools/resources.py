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
from emceepee.tools.content import result_of
from emceepee.tools.declaration import Caller, Outcome, Params, tool
from emceepee.tools.execution import Timed, seconds
from emceepee.tools.heartbeat import kept_awake
from emceepee.tools.own_resources import LISTED, read_own_resource
from emceepee.tools.paging import Paged, page
from emceepee.tools.promotion import promoted


class ListOf(Paged):
    """Entries of one server, or of all."""

    server: str | None = None


class ReadResource(Timed):
    """One resource."""

    server: str
    uri: str = Field(min_length=1)


@tool
async def list_resources(params: ListOf, session: Session) -> JsonObject:
    """List the servers' resources."""
    if params.server == RESERVED_NAME:
        return page("resources", Listing([{"server": RESERVED_NAME, **entry} for entry in LISTED]), params)
    return await list_kind(Kind.RESOURCES, params, session)


@tool
async def list_resource_templates(params: ListOf, session: Session) -> JsonObject:
    """List the servers' resource templates."""
    return await list_kind(Kind.TEMPLATES, params, session)


@tool
async def read_resource(params: ReadResource, session: Session, caller: Caller) -> Outcome:
    """Read a resource, text and binary. emceepee's own (emceepee://diagrams) with server="emceepee"."""
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
    return promoted(result, session) if isinstance(result, Task) else result_of("resources/read", result)


class OneResource(Params):
    """A resource to follow."""

    server: str
    uri: str = Field(min_length=1)


@tool
async def subscribe_resource(params: OneResource, session: Session) -> JsonObject:
    """Hear of changes to a resource, as notifications; survives a reconnect."""
    await (await _subscribable(params.server, session)).subscribe(params.uri)
    return {"subscribed": params.uri}


@tool
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
