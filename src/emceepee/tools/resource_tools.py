"""Tools for the backends' resources."""

from collections.abc import Sequence
from typing import Annotated, NotRequired, TypedDict, cast

from pydantic import Field

from emceepee.backends.catalog import ListKind
from emceepee.backends.connection import Connection
from emceepee.backends.spec import RESERVED_NAME
from emceepee.errors import Unsupported
from emceepee.sessions.lists.entry_list import list_everywhere
from emceepee.sessions.session import Session
from emceepee.sessions.views import Described
from emceepee.state.task import Task
from emceepee.surface import call_to
from emceepee.tools.content import CallResult
from emceepee.tools.declaration.declaration import AnyServer, Brief, Params, ServerName, tool
from emceepee.tools.declaration.hints import CORE, READS, SETS, found_by
from emceepee.tools.entry_pages import Detailed, Entries, ListedEntry, Page, described, fields, page
from emceepee.tools.excerpts.large_results import limited_result
from emceepee.tools.execution_tools import Bounded, Timed, seconds
from emceepee.tools.own_resources import EVENTS_URI, LISTED, check_own_resource, read_own_resource
from emceepee.tools.replies.heartbeat import relay_progress
from emceepee.tools.replies.input_required import continue_call, describe_task
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject


def _named(entry: JsonObject) -> JsonObject:
    return fields("name", "mimeType")(entry) | described(entry)


ENTRIES = {
    ListKind.RESOURCES: Entries("list_resources", ListKind.RESOURCES.key, "uri", _named),
    ListKind.TEMPLATES: Entries("list_resource_templates", ListKind.TEMPLATES.key, "uriTemplate", _named),
    ListKind.PROMPTS: Entries("list_prompts", ListKind.PROMPTS.key, "name", described),
}


class ListOf(Detailed):
    """Parameters: one server, or all."""

    server: AnyServer = None


class ReadResource(Timed, Bounded):
    """Parameters: one resource."""

    server: str = Field(description="Server name; emceepee for its own")
    uri: str = Field(min_length=1, description="From list_resources or a template")


class ListedResources(Page):
    """`errors` names the servers that could not return their resources."""

    resources: list[ListedEntry]


class ListedTemplates(Page):
    """`errors` names the servers that could not return their templates."""

    resourceTemplates: list[ListedEntry]


ResourceResult = Annotated[
    CallResult | JsonObject,
    Described(
        "The server's own result: `{contents: […]}`, or [the task](#a-call-that-becomes-a-task) that the call became. "
        "emceepee's own resources are `emceepee://diagrams` ([the diagrams](diagrams.md)), `emceepee://events`, "
        "which a client can subscribe to (updates report *that* something happened), and `emceepee://metrics`, metrics "
        "of the session."
    ),
]


class Subscribed(TypedDict):
    """Changes arrive as `notification` events and in `get_notifications`."""

    subscribed: str
    note: NotRequired[str]


class _Note(TypedDict):
    note: NotRequired[str]


class Unsubscribed(TypedDict):
    """The resource that is no longer followed."""

    unsubscribed: str


@tool(
    title="List servers' resources", effect=READS, load=found_by("MCP resources files documents"), unlisted=("detail",)
)
async def list_resources(params: ListOf, session: Session) -> ListedResources:
    """List servers' resources, for read_resource."""
    own = [{"server": RESERVED_NAME, **entry} for entry in LISTED]
    if params.server == RESERVED_NAME:
        return cast(
            ListedResources, page(own, params, ENTRIES[ListKind.RESOURCES], room=session.limits.list_reply_bytes)
        )
    listed = await list_kind(ListKind.RESOURCES, params, session, own if params.server is None else [])
    return cast(ListedResources, listed)


@tool(
    title="List servers' resource templates",
    effect=READS,
    load=found_by("MCP resource URI templates"),
    unlisted=("detail",),
)
async def list_resource_templates(params: ListOf, session: Session) -> ListedTemplates:
    """List servers' resource templates: URIs to fill in for read_resource."""
    return cast(ListedTemplates, await list_kind(ListKind.TEMPLATES, params, session))


@tool(
    title="Read a resource",
    effect=READS,
    load=CORE,
    brief=Brief("Read a resource, text or binary.", ("server", "uri"), {"uri": "From codemode_search"}),
)
async def read_resource(params: ReadResource, session: Session, caller: RequestContext) -> ResourceResult:
    """Read a resource, text or binary; a slow one becomes a task."""
    if params.server == RESERVED_NAME:
        return read_own_resource(params.uri, session)
    if caller.answers is not None:
        return await continue_call(caller.answers, session, caller, seconds(params.timeout_ms), params.max_bytes)
    with relay_progress(caller, session.clock) as on_progress:
        result = await session.call(
            params.server,
            "resources/read",
            caller.with_trace({"uri": params.uri}),
            tool="read_resource",
            arguments={"uri": params.uri},
            timeout=seconds(params.timeout_ms),
            on_progress=on_progress,
            on_call=caller.record_call,
        )
    if isinstance(result, Task):
        return describe_task(result, session, caller)
    return await limited_result("resources/read", result, params.max_bytes, session)


class OneResource(Params):
    """Parameters: a resource to follow."""

    server: ServerName
    uri: str = Field(min_length=1, description="The resource")


@tool(title="Follow a resource", effect=SETS, load=found_by("watch MCP resource changes"), is_durable=True)
async def subscribe_resource(params: OneResource, session: Session, caller: RequestContext) -> Subscribed:
    """Hear of changes to a resource: each is an event (await_activity)."""
    if params.server == RESERVED_NAME:
        return {"subscribed": params.uri, **_follow_own(params.uri, caller, wanted=True)}
    await (await _subscribable(params.server, session)).settings.subscribe(params.uri)
    return {"subscribed": params.uri}


@tool(title="Stop following a resource", effect=SETS, load=found_by("unwatch MCP resource"), is_durable=True)
async def unsubscribe_resource(params: OneResource, session: Session, caller: RequestContext) -> Unsubscribed:
    """No longer hear of changes to a resource."""
    if params.server == RESERVED_NAME:
        _follow_own(params.uri, caller, wanted=False)
        return {"unsubscribed": params.uri}
    await session.connection(params.server).settings.unsubscribe(params.uri)
    return {"unsubscribed": params.uri}


async def list_kind(kind: ListKind, params: ListOf, session: Session, own: Sequence[JsonObject] = ()) -> JsonObject:
    """Return the entries of one kind from the requested servers, then emceepee's own."""
    connections = session.connections if params.server is None else [session.connection(params.server)]
    listing = await list_everywhere(connections, kind, patience=session.limits.list_patience_seconds)
    listed = page([*listing.entries, *own], params, ENTRIES[kind], room=session.limits.list_reply_bytes)
    return listed | ({"errors": listing.errors} if listing.errors else {})


def _follow_own(uri: str, caller: RequestContext, *, wanted: bool) -> _Note:
    """Follow or unfollow the events. No other own resource ever changes, and replies deliver events in any case."""
    check_own_resource(uri)
    if uri != EVENTS_URI:
        return {}
    if caller.follow_events is not None:
        caller.follow_events(wanted)
        return {}
    how = (
        f"this connection gets updates only by subscriptions/listen; {call_to('await_activity')} also waits for events"
    )
    return {"note": how} if wanted else {}


async def _subscribable(server: str, session: Session) -> Connection:
    connection = session.connection(server)
    resources = (await connection.ready()).facts.capabilities.get("resources")
    if not (isinstance(resources, dict) and resources.get("subscribe")):
        raise Unsupported(f'Server "{server}" offers no subscriptions to resources.', details={"server": server})
    return connection
