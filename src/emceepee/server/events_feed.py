"""`emceepee://events`: notifies subscribers that there are new events. It delivers no events itself."""

import asyncio
from collections.abc import Callable

from emceepee.server.listen_requests import ListChange, resource_updated
from emceepee.sessions.session import Session
from emceepee.tools.own_resources import EVENTS_URI
from emceepee.wire.json_rpc import notification_message
from emceepee.wire.json_types import JsonObject

_NEWS = resource_updated(EVENTS_URI)


class EventsFeed:
    """The part of a caller that the protocol methods may use: the changes that the caller can listen for.

    `session` is None for a caller without a session, which has no events. `on_follow` is called when following begins
    or ends.
    """

    offered = frozenset({_NEWS})  # emceepee's lists never change: each request has its own surface

    def __init__(
        self,
        session: Session | None,
        send: Callable[[JsonObject], None],
        *,
        on_follow: Callable[[], None] | None = None,
    ) -> None:
        self.session, self.send, self._on_follow = session, send, on_follow
        self._listeners: dict[object, Callable[[ListChange], None]] = {}
        self._unfollow: Callable[[], None] | None = None
        self._is_due = False

    @property
    def is_followed(self) -> bool:
        return self._unfollow is not None

    def follow(self, wanted: bool) -> None:
        """Start or stop sending `resources/updated` for new events."""
        if self._unfollow is not None and not wanted:
            self._unfollow()
            self._unfollow = None
        elif self._unfollow is None and wanted:
            self._unfollow = self.subscribe(self._send_updated)
        if self._on_follow is not None:
            self._on_follow()

    def _send_updated(self, change: ListChange) -> None:
        self.send(notification_message("notifications/resources/updated", {"uri": EVENTS_URI}))

    def subscribe(self, listener: Callable[[ListChange], None]) -> Callable[[], None]:
        """Add a listener. Return a function that ends the subscription; calling it twice is safe."""
        token = object()
        if not self._listeners and self.session is not None:
            self.session.activity.event_signal.watch(self._publish_soon)
        self._listeners[token] = listener

        def unsubscribe() -> None:
            last = self._listeners.pop(token, None) is not None and not self._listeners
            if last and self.session is not None:
                self.session.activity.event_signal.unwatch(self._publish_soon)

        return unsubscribe

    def _publish_soon(self) -> None:
        """Publish one update for all events in one turn of the loop."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_soon(self._publish_update)

    def _publish_update(self) -> None:
        self._is_due = False
        for listener in list(self._listeners.values()):
            listener(_NEWS)
