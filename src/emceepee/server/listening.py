"""`subscriptions/listen` of 2026-07-28: the response is a stream, on which a caller hears of what it named."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from emceepee.json_rpc import RequestId, notification_message
from emceepee.json_types import JsonObject
from emceepee.protocol import SUBSCRIPTION_ID_META_KEY
from emceepee.server.params import Wanted


@dataclass(frozen=True, slots=True)
class Change:
    """A list changed, or the resource at `uri`: the notification that tells it."""

    method: str
    uri: str | None = None


TOOLS_CHANGED = Change("notifications/tools/list_changed")
PROMPTS_CHANGED = Change("notifications/prompts/list_changed")
RESOURCES_CHANGED = Change("notifications/resources/list_changed")


def resource_updated(uri: str) -> Change:
    return Change("notifications/resources/updated", uri)


class Changes(Protocol):
    """Where changes are heard of."""

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        """Returns what ends the subscription; it may be called twice."""
        ...


async def listen(
    changes: Changes, wanted: Wanted, request_id: RequestId, send: Callable[[JsonObject], None]
) -> JsonObject:
    """Goes on until it is cancelled: then the stream just ends. What happens between two streams is told on neither."""
    told = _changes_in(wanted)
    meta: JsonObject = {SUBSCRIPTION_ID_META_KEY: request_id}

    def tell(change: Change) -> None:
        if change in told:
            about: JsonObject = {} if change.uri is None else {"uri": change.uri}
            send(notification_message(change.method, {**about, "_meta": meta}))

    granted = {"notifications": _granted(wanted), "_meta": meta}
    send(notification_message("notifications/subscriptions/acknowledged", granted))
    unsubscribe = changes.subscribe(tell)
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        unsubscribe()
    return {"_meta": meta}


def _changes_in(wanted: Wanted) -> frozenset[Change]:
    lists = {
        TOOLS_CHANGED: wanted.tools_list_changed,
        PROMPTS_CHANGED: wanted.prompts_list_changed,
        RESOURCES_CHANGED: wanted.resources_list_changed,
    }
    uris = wanted.resource_subscriptions or ()
    return frozenset(change for change, is_wanted in lists.items() if is_wanted).union(map(resource_updated, uris))


def _granted(wanted: Wanted) -> JsonObject:
    """Everything that was named: whether it ever happens is another matter."""
    named: JsonObject = {
        "toolsListChanged": wanted.tools_list_changed,
        "promptsListChanged": wanted.prompts_list_changed,
        "resourcesListChanged": wanted.resources_list_changed,
        "resourceSubscriptions": wanted.resource_subscriptions,
    }
    return {name: value for name, value in named.items() if value}
