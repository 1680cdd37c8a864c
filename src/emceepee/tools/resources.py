"""Tools for the backends' resources."""

from pydantic import Field

from emceepee.backends.catalog import Kind
from emceepee.json_types import JsonObject
from emceepee.sessions.listing import list_everywhere
from emceepee.sessions.session import Session
from emceepee.tools.declaration import Caller, tool
from emceepee.tools.execution import Timed, seconds
from emceepee.tools.paging import Paged, page


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
    return await list_kind(Kind.RESOURCES, params, session)


@tool
async def list_resource_templates(params: ListOf, session: Session) -> JsonObject:
    """List the servers' resource templates."""
    return await list_kind(Kind.TEMPLATES, params, session)


@tool
async def read_resource(params: ReadResource, session: Session, caller: Caller) -> JsonObject:
    """Read a resource, text and binary."""
    return await session.call(
        params.server,
        "resources/read",
        {"uri": params.uri},
        timeout=seconds(params),
        on_progress=caller.on_progress,
    )


async def list_kind(kind: Kind, params: ListOf, session: Session) -> JsonObject:
    """One kind of entry over the servers asked for."""
    connections = session.connections if params.server is None else [session.connection(params.server)]
    return page(
        kind.key, await list_everywhere(connections, kind, patience=session.limits.list_patience_seconds), params
    )
