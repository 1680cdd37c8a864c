"""Sends each request of a connection in the era of its link, and changes the era if the server requires it.

2026-07-28, but a tool cannot ask       no other call needs this era: a handshake-era link replaces this one
                                        the server runs its own tasks: that tool is called over a second link
handshake, but a tool needs a task      a 2026-07-28 link replaces this one, and the call is sent there
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from emceepee.backends.backend_lists import BackendLists
from emceepee.backends.caller_errors import first_text, needs_handshake_era, request_failed
from emceepee.backends.connection_events import Observer
from emceepee.backends.era_memory import EraMemory, cannot_ask
from emceepee.backends.link import Link, LinkError, LinkFailure, RpcError, ServerFacts
from emceepee.backends.spec import BackendSpec
from emceepee.backends.tasks.backend_tasks import BackendTasks, CallPlan
from emceepee.backends.tasks.task_messages import TASKS_EXTENSION, CreatedTask, is_created
from emceepee.errors import ExecutionFailed
from emceepee.lifecycle import CLOSE_LINK_SECONDS, close_bounded
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import MISSING_CLIENT_CAPABILITY, NAMED_BY


class EraChanged(Exception):
    """The request did not run, because a link of the era that it needs is replacing this one."""


class RequestSender:
    """Sends the requests of one connection.

    `retire` replaces a link. `dial_side` opens a second link in the handshake era.
    """

    def __init__(
        self,
        spec: BackendSpec,
        eras: EraMemory,
        lists: BackendLists,
        backend_tasks: BackendTasks,
        observer: Observer,
        *,
        retire: Callable[[Link], None],
        dial_side: Callable[[], Awaitable[Link]],
    ) -> None:
        self._spec, self._eras, self._retire = spec, eras, retire
        self._lists, self._backend_tasks, self._observer = lists, backend_tasks, observer
        self.side_link = SideLink(dial_side)

    def send(
        self, method: str, params: JsonObject, origin: object | None, plan: CallPlan, link: Link
    ) -> Awaitable[JsonObject]:
        """Send the request once, on this link, and return the raw result.

        Raises:
            RpcError, LinkError, EmceepeeError
            EraChanged: the request did not run and can be sent on the next link.
        """
        send = self._send_modern if link.facts.is_modern else self._send_handshake
        return send(link, method, params, origin, plan)

    def forget_era(self) -> None:
        """Forget the eras that the tools' errors implied, so that the server chooses its era again."""
        self._eras.forget_correction(self._spec.target)

    async def _send_handshake(
        self, link: Link, method: str, params: JsonObject, origin: object | None, plan: CallPlan
    ) -> JsonObject:
        if plan.is_unsent:
            await self._observer.mark_sent(plan)
        if "inputResponses" in params or "requestState" in params:
            raise LinkError(LinkFailure.CLOSED, "it is now connected in another era, in which the call cannot continue")
        try:
            if self._backend_tasks.is_offered and method == "tools/call" and self._lists.catalog is not None:
                return await self._backend_tasks.call(link, params, origin, self._lists.catalog, plan)
            return await link.request(method, params, origin=origin)
        except RpcError as error:
            self._check_refusal(link, method, error)
            raise

    async def _send_modern(
        self, link: Link, method: str, params: JsonObject, origin: object | None, plan: CallPlan
    ) -> JsonObject:
        if plan.is_unsent:
            await self._observer.mark_sent(plan)
        if self._eras.split_servers and self._eras.asks(self._spec.target, _name_of(method, params)):
            return await self._send_aside(method, params, origin)
        headers = None
        if link.mirrors_arguments and method == "tools/call" and self._lists.catalog is not None:
            headers = await self._lists.catalog.param_headers(params["name"], params.get("arguments") or {})
        try:
            result = await link.request(method, params, origin=origin, headers=headers)
        except RpcError as error:
            self._check_words(link, method, params, str(error), {"error": error.error})
            raise
        if result.get("isError"):
            self._check_words(link, method, params, first_text(result), {"result": result})
        return CreatedTask(result) if is_created(result, method) else result

    async def _send_aside(self, method: str, params: JsonObject, origin: object | None) -> JsonObject:
        """Send a call over the second link. Raises: RpcError, EmceepeeError."""
        try:
            return await self.side_link.request(method, params, origin=origin)
        except LinkError as error:  # a failure of the second link proves nothing about the first
            raise request_failed(self._spec.name, method, error) from error
        except TimeoutError:
            raise ExecutionFailed(
                f'Server "{self._spec.name}" did not answer when emceepee connected to it in an earlier protocol '
                f"version, which {method} needs. Nothing ran there. Call again.",
                details={"server": self._spec.name},
            ) from None

    def _check_words(self, link: Link, method: str, params: JsonObject, words: str, answer: JsonObject) -> None:
        """Raises: EmceepeeError if the error message means that the server cannot ask in 2026-07-28."""
        if not cannot_ask(words) or self._spec.mode != "auto":
            return
        target = self._spec.target
        is_split = _has_tasks(link.facts) or self._eras.is_split(target)
        if is_split:
            self._eras.split(target, _name_of(method, params))
        else:
            self._eras.correct(target)
            self._retire(link)
        raise needs_handshake_era(self._spec.name, words, answer, is_split=is_split)

    def _check_refusal(self, link: Link, method: str, error: RpcError) -> None:
        """Check a refusal on a handshake-era link.

        Raises:
            EraChanged: the call needs 2026-07-28, and the server supports it.
            EmceepeeError: the server may support it, but the operator's `mode` forbids it.
        """
        if error.code != MISSING_CLIENT_CAPABILITY:
            return
        if self._spec.mode == "auto" and self._eras.take_back(self._spec.target):
            self._retire(link)
            raise EraChanged
        if self._spec.mode == "legacy":
            raise ExecutionFailed(
                f'Server "{self._spec.name}" refused {method}: {error}. Its mode is "legacy", and the call may need '
                "2026-07-28: omit mode, so that emceepee chooses the version that each call needs.",
                details={"server": self._spec.name, "error": error.error},
            )


class SideLink:
    """The second link to a server that needs both eras. `dial` opens it on first use.

    The first link stays in 2026-07-28, where the server has its tasks and extensions. The second link carries only
    calls that can ask in no other era, with their questions and progress notifications.
    """

    def __init__(self, dial: Callable[[], Awaitable[Link]]) -> None:
        self._dial = dial
        self._dial_lock = asyncio.Lock()
        self._link: Link | None = None
        self._requests = 0  # in flight

    async def request(self, method: str, params: JsonObject, *, origin: object | None) -> JsonObject:
        """Raises: RpcError, LinkError."""
        self._requests += 1
        try:
            link = await self._open()
            return await link.request(method, params, origin=origin)
        finally:
            self._requests -= 1

    @property
    def is_idle(self) -> bool:
        """Whether the link is open and has no requests in flight."""
        return self._link is not None and not self._requests

    async def close(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await close_bounded(link.close(), within=CLOSE_LINK_SECONDS, what="a second link")

    async def _open(self) -> Link:
        async with self._dial_lock:
            if self._link is not None and self._link.closed.done():
                await self.close()
            if self._link is None:
                self._link = await self._dial()
            return self._link


def _has_tasks(facts: ServerFacts) -> bool:
    extensions = facts.capabilities.get("extensions")
    return isinstance(extensions, Mapping) and TASKS_EXTENSION in extensions


def _name_of(method: str, params: JsonObject) -> str:
    return f"{method} {params.get(NAMED_BY.get(method, ''), '')}"
