"""`subscriptions/listen` of 2026-07-28: the response is a stream of the notifications that the caller selected."""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass
from typing import Protocol

from emceepee.server.params import Wanted
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import RequestId, notification_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import SUBSCRIPTION_ID_META_KEY

LISTEN = "subscriptions/listen"


@dataclass(frozen=True, slots=True)
class ListChange:
    """A changed list, or a changed resource at `uri`, and its notification."""

    method: str
    uri: str | None = None


TOOLS_CHANGED = ListChange("notifications/tools/list_changed")
PROMPTS_CHANGED = ListChange("notifications/prompts/list_changed")
RESOURCES_CHANGED = ListChange("notifications/resources/list_changed")


def resource_updated(uri: str) -> ListChange:
    return ListChange("notifications/resources/updated", uri)


class Changes(Protocol):
    """A source of changes."""

    @property
    def offered(self) -> Set[ListChange]:
        """The changes that can occur; no other change is granted."""
        ...

    def subscribe(self, listener: Callable[[ListChange], None]) -> Callable[[], None]:
        """Add a listener. Return a function that ends the subscription; calling it twice is safe."""
        ...


async def listen(changes: Changes, wanted: Wanted, context: RequestContext) -> JsonObject:
    """Stream changes until `end_listens`, then return the result. If its caller cancels it, the stream just ends.

    Changes between two streams are reported on neither.
    """
    told, send = _changes_to_tell(changes, wanted), context.channel.send
    result = listen_result(context.request.request_id)
    meta = result["_meta"]

    def tell(change: ListChange) -> None:
        if change in told:
            about: JsonObject = {} if change.uri is None else {"uri": change.uri}
            send(notification_message(change.method, {**about, "_meta": meta}))

    granted = {"notifications": _filter_of(told), "_meta": meta}
    send(notification_message("notifications/subscriptions/acknowledged", granted))
    unsubscribe = changes.subscribe(tell)
    try:
        await context.ended.wait()
    finally:
        unsubscribe()
    return result


def listen_result(request_id: RequestId) -> JsonObject:
    """Return the result of a listen that its caller did not cancel."""
    return {"_meta": {SUBSCRIPTION_ID_META_KEY: request_id}}


def end_listens(contexts: Iterable[RequestContext]) -> None:
    """End the listens among the requests, which then return their results."""
    for context in contexts:
        if context.request.method == LISTEN:
            context.ended.set()


def _changes_to_tell(changes: Changes, wanted: Wanted) -> frozenset[ListChange]:
    lists = {
        TOOLS_CHANGED: wanted.tools_list_changed,
        PROMPTS_CHANGED: wanted.prompts_list_changed,
        RESOURCES_CHANGED: wanted.resources_list_changed,
    }
    uris = wanted.resource_subscriptions or ()
    return frozenset(change for change in changes.offered if lists.get(change) or change.uri in uris)


def _filter_of(told: Set[ListChange]) -> JsonObject:
    """Return the filter that requests exactly these changes."""
    lists = {
        "toolsListChanged": TOOLS_CHANGED,
        "promptsListChanged": PROMPTS_CHANGED,
        "resourcesListChanged": RESOURCES_CHANGED,
    }
    uris = sorted(change.uri for change in told if change.uri is not None)
    granted: JsonObject = {name: True for name, change in lists.items() if change in told}
    return granted | ({"resourceSubscriptions": uris} if uris else {})
