"""`subscriptions/listen` of 2026-07-28: the response is a stream, on which a caller hears of what it named."""

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
    """A list changed, or the resource at `uri`: the notification that tells it."""

    method: str
    uri: str | None = None


TOOLS_CHANGED = ListChange("notifications/tools/list_changed")
PROMPTS_CHANGED = ListChange("notifications/prompts/list_changed")
RESOURCES_CHANGED = ListChange("notifications/resources/list_changed")


def resource_updated(uri: str) -> ListChange:
    return ListChange("notifications/resources/updated", uri)


class Changes(Protocol):
    """Where changes are heard of."""

    @property
    def offered(self) -> Set[ListChange]:
        """Those that there can be; nobody is promised any other."""
        ...

    def subscribe(self, listener: Callable[[ListChange], None]) -> Callable[[], None]:
        """Returns what ends the subscription; it may be called twice."""
        ...


async def listen(changes: Changes, wanted: Wanted, context: RequestContext) -> JsonObject:
    """Goes on until it is ended (`end_listens`), and then has a result. If its caller cancels it, the stream just ends.

    What happens between two streams is told on neither.
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
    """That of a listen which did not end by its caller's wish."""
    return {"_meta": {SUBSCRIPTION_ID_META_KEY: request_id}}


def end_listens(contexts: Iterable[RequestContext]) -> None:
    """Those among the requests have their results in a moment."""
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
    """As a caller would have asked for just that."""
    lists = {
        "toolsListChanged": TOOLS_CHANGED,
        "promptsListChanged": PROMPTS_CHANGED,
        "resourcesListChanged": RESOURCES_CHANGED,
    }
    uris = sorted(change.uri for change in told if change.uri is not None)
    granted: JsonObject = {name: True for name, change in lists.items() if change in told}
    return granted | ({"resourceSubscriptions": uris} if uris else {})
