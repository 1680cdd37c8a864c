"""`emceepee://events`: subscribers hear that something happened, and no event is delivered by it."""

import asyncio
from collections.abc import Callable

from mcp.server.subscriptions import ResourceUpdated, ServerEvent

from emceepee.sessions.activity import Activity
from emceepee.tools.own_resources import EVENTS_URI


class EventsFeed:
    """One session's feed, in the words of the SDK's SubscriptionBus."""

    def __init__(self, activity: Activity) -> None:
        self._activity = activity
        self._listeners: dict[object, Callable[[ServerEvent], None]] = {}
        self._is_due = False

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """Returns what ends the subscription; it may be called twice."""
        token = object()
        if not self._listeners:
            self._activity.event_signal.watch(self._happened)
        self._listeners[token] = listener

        def unsubscribe() -> None:
            if self._listeners.pop(token, None) is not None and not self._listeners:
                self._activity.event_signal.unwatch(self._happened)

        return unsubscribe

    async def publish(self, event: ServerEvent) -> None:
        for listener in list(self._listeners.values()):
            listener(event)

    def _happened(self) -> None:
        """Many events of one moment are one piece of news."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._tell)

    def _tell(self) -> None:
        self._is_due = False
        for listener in list(self._listeners.values()):
            listener(ResourceUpdated(uri=EVENTS_URI))
