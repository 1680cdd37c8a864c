"""Routes messages from the links of a connection: to the connection's own parts, or to the session.

Questions go directly to the session, whose method is an attribute here.
"""

import asyncio

from emceepee.backends.backend_lists import BackendLists
from emceepee.backends.backend_task import BackendTask
from emceepee.backends.link import Listener
from emceepee.backends.links.subscriptions import ACKNOWLEDGED, Subscriptions, without_subscription
from emceepee.backends.process.stderr_lines import StderrLines
from emceepee.backends.tasks.backend_tasks import BackendTasks
from emceepee.wire.json_types import JsonObject

CALL_NOTIFICATIONS = ("notifications/progress", "notifications/message", "notifications/elicitation/complete")


class LinkListener:
    """The `Listener` of every link. It forwards to the session's listener."""

    def __init__(
        self, listener: Listener, subscriptions: Subscriptions, lists: BackendLists, backend_tasks: BackendTasks
    ) -> None:
        self._listener, self._subscriptions = listener, subscriptions
        self._lists, self._backend_tasks = lists, backend_tasks
        self.handle_request, self.handle_task = listener.handle_request, listener.handle_task
        self.take_request = backend_tasks.take_request
        self.stderr_of_dial: StderrLines | None = None  # while a link is being opened

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        if method == ACKNOWLEDGED:
            self._subscriptions.acknowledge()
            return
        if len(self._backend_tasks):
            if self._backend_tasks.handle_status(method, params):
                return
            origin = origin or self._backend_tasks.origin_of(params)
        if self._lists.catalog is not None:
            self._lists.catalog.invalidate(method)
        self._listener.handle_notification(method, without_subscription(params), origin)

    def handle_output(self, line: str, source: str) -> None:
        if self.stderr_of_dial is not None and source == "stderr":
            self.stderr_of_dial.append(line)
        self._listener.handle_output(line, source)


class SideListener:
    """The `Listener` of a second link. It drops change notifications, which already arrive over the first link."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.handle_request, self.handle_output = listener.handle_request, listener.handle_output

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        if method in CALL_NOTIFICATIONS:
            self._listener.handle_notification(method, params, origin)

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        return None

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        pass
