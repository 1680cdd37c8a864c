"""One session's view of a shared link. Its connection uses it like any other link."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from emceepee.backends.link import Link, LinkError, LinkFailure, LinkLifetime, Listener, ServerFacts
from emceepee.backends.links.shared_access import CURRENT_SOURCE
from emceepee.backends.oauth.token_access import TokenSource
from emceepee.backends.tasks.own_tasks import OwnTasks
from emceepee.state.connection.connection_state import CLOSED, LinkEnd, LinkEndKind
from emceepee.wire.json_types import JsonObject

LISTEN = "subscriptions/listen"


class CallOrigin(NamedTuple):
    """A call, and the view of the session that made it."""

    view: "LinkView"
    call: object | None


@dataclass(frozen=True, slots=True)
class SharedResumption:
    """The data that the next shared link needs to find the server's state again.

    Another process cannot use it, because it belongs to several sessions. Only `tasks` belong to this session.
    """

    resumption: object
    tasks: OwnTasks = field(default_factory=OwnTasks)


class ViewedLink(Protocol):
    """The shared link behind a view."""

    @property
    def live(self) -> Link:
        """Raises: LinkError."""
        ...

    async def ask(self, view: "LinkView", method: str, params: JsonObject) -> JsonObject | None:
        """Send a request on behalf of all users of the link. Raises: RpcError, LinkError.

        Return None if users do not share the method.
        """
        ...

    def replace(self, end: LinkEnd) -> None: ...
    def change_level(self) -> None: ...
    async def leave(self, view: "LinkView") -> None: ...


class LinkView(LinkLifetime):
    """`uris` and `level` are this session's settings. `calls` is the number of its calls in flight.

    `tasks` are its own tasks at the server, including tasks that began on earlier links.
    """

    def __init__(
        self,
        shared: ViewedLink,
        listener: Listener,
        access: TokenSource | None = None,
        tasks: OwnTasks | None = None,
    ) -> None:
        super().__init__()
        self._shared, self.listener, self.access = shared, listener, access
        self.tasks = OwnTasks() if tasks is None else tasks
        self._work: set[asyncio.Task[JsonObject]] = set()
        self._failed: LinkError | None = None
        self.facts = ServerFacts()
        self.uris: set[str] = set()
        self.level: str | None = None
        self.calls = 0

    @property
    def mirrors_arguments(self) -> bool:
        link = self._live
        return link is not None and link.mirrors_arguments

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        if self._failed is not None:
            raise LinkError(self._failed.failure, str(self._failed), may_have_run=False)
        is_call = origin is not None and method != LISTEN
        work = asyncio.ensure_future(self._request(method, params, origin, headers))
        self._work.add(work)
        self.calls += is_call
        try:
            return await work
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self.closed.done() or (task is not None and task.cancelling()):
                raise
            raise LinkError(LinkFailure.CLOSED, self.closed.result().reason) from None
        except LinkError:
            await _next_turn()  # by then, callers of a failed call have received its error
            raise
        finally:
            self.calls -= is_call
            self._work.discard(work)

    async def _request(
        self, method: str, params: JsonObject | None, origin: object | None, headers: Mapping[str, str] | None
    ) -> JsonObject:
        CURRENT_SOURCE.set(self.access)
        answer = await self._shared.ask(self, method, params or {})
        if answer is not None:
            return answer
        wrapped = None if origin is None else CallOrigin(self, origin)
        asking = self._shared.live.request(method, params, origin=wrapped, headers=headers)
        return await self.tasks.learn(method, params or {}, asking)

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._shared.live.notify(method, params)

    async def send_answer(self, message: JsonObject) -> None:
        await self._shared.live.send_answer(message)

    def set_log_level(self, level: str) -> None:
        self.level = level
        self._shared.change_level()

    @property
    def is_busy(self) -> bool:
        return self._failed is None and self._shared.live.is_busy

    @property
    def identity(self) -> str | None:
        link = self._live
        return None if link is None else link.identity

    @property
    def resumption(self) -> SharedResumption | None:
        resumption = None if self._live is None else self._live.resumption
        return None if resumption is None else SharedResumption(resumption, self.tasks)

    def leave_session(self) -> None: ...

    def end(self, end: LinkEnd, error: LinkError | None = None) -> None:
        """End this view. If the link is lost or has to be replaced, replace it for all its users."""
        was_open = not self.closed.done()
        super().end(end, error)
        if was_open and end.kind in (LinkEndKind.LOST, LinkEndKind.REPLACED):
            self._shared.replace(end)

    async def close(self) -> None:
        self.end(CLOSED)
        await self._shared.leave(self)

    def process(self) -> JsonObject | None:
        link = self._live
        return None if link is None else link.process()

    @property
    def _live(self) -> Link | None:
        try:
            return self._shared.live
        except LinkError:
            return None

    def _fail_requests(self, error: LinkError) -> None:
        self._failed = error
        for work in self._work:
            work.cancel()


async def _next_turn() -> None:
    """Wait for one turn of the event loop, so that ready callbacks run first."""
    turn = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turn.set_result, None)
    await turn
