"""Backends that say what the test tells them to, without a process or a socket."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from emceepee.backends.backend_metrics import BackendMetrics
from emceepee.backends.era_memory import EraMemory
from emceepee.backends.link import Link, LinkError, LinkFailure, Listener, RpcError, ServerFacts
from emceepee.backends.links.link_view import SharedResumption
from emceepee.backends.links.shared_links import SharedLinks
from emceepee.backends.links.subscriptions import ACKNOWLEDGED
from emceepee.backends.oauth.token_access import Authorizer, TokenSource
from emceepee.backends.recording.recorded_link import dial_recorded
from emceepee.backends.recording.recorder import Recorder
from emceepee.backends.recording.recordings import Recordings
from emceepee.backends.spec import BackendSpec
from emceepee.clock import SystemClock
from emceepee.state.connection.connection_state import CLOSED, LinkEnd, LinkEndKind
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject

ALL_CAPABILITIES: JsonObject = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "logging": {},
    "completions": {},
}
Answer = Callable[[JsonObject], JsonObject | Awaitable[JsonObject]]


@dataclass(eq=False)
class Asked:
    """One request that reached the backend and waits for the test's answer."""

    method: str
    params: JsonObject
    origin: object | None
    answer: "asyncio.Future[JsonObject]"

    def reply(self, **result: Any) -> None:
        self.answer.set_result(result)

    def refuse(self, code: int, message: str) -> None:
        self.answer.set_exception(RpcError({"code": code, "message": message}))

    def fail(self, error: LinkError | RpcError) -> None:
        self.answer.set_exception(error)


@dataclass(frozen=True)
class Dialled:
    """The arguments of one attempt to connect."""

    caller_id: str | None
    resumption: object | None


class ScriptedBackend:
    """A backend in the test's hands. Methods in `answers` reply by themselves; all others wait in `asked`."""

    def __init__(
        self,
        *,
        modern: bool = False,
        tools: list[str] | None = None,
        is_process: bool = False,
        capabilities: JsonObject | None = None,
    ) -> None:
        self.facts = ServerFacts(
            protocol_version="2026-07-28" if modern else "2025-11-25",
            server_info={"name": "scripted", "version": "1"},
            capabilities=dict(capabilities or ALL_CAPABILITIES),
            is_modern=modern,
        )
        names = tools if tools is not None else ["echo", "slow"]
        self.answers: dict[str, Answer] = {
            "tools/list": lambda _: {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]},
            "resources/list": lambda _: {"resources": []},
            "resources/templates/list": lambda _: {"resourceTemplates": []},
            "prompts/list": lambda _: {"prompts": []},
            "logging/setLevel": lambda _: {},
        }
        self.asked: list[Asked] = []
        self.seen: list[tuple[str, JsonObject]] = []
        self.cancelled: list[Asked] = []
        self.answered: list[JsonObject] = []  # requests of its own, by the session and not by the link
        self.links: list[ScriptedLink] = []
        self.refuses: LinkError | None = None
        self.identity: str | None = None
        self.resumption: object | None = None
        self.opens: asyncio.Future[None] | None = None  # when set, a connect waits for it
        self.closes: asyncio.Future[None] | None = None  # when set, closing a link waits for it
        self.is_busy = False
        self.is_process = is_process
        self.pids = itertools.count(101)
        self.dials: list[Dialled] = []
        self._arrived = asyncio.Event()

    @property
    def link(self) -> "ScriptedLink":
        """The newest link."""
        return self.links[-1]

    async def next_asked(self, method: str = "tools/call") -> Asked:
        """The oldest unanswered request of that method, as soon as there is one."""
        async with asyncio.timeout(5):
            while True:
                for asked in self.asked:
                    if asked.method == method and not asked.answer.done():
                        self.asked.remove(asked)
                        return asked
                self._arrived.clear()
                await self._arrived.wait()

    def arrive(self, asked: Asked) -> None:
        self.asked.append(asked)
        self._arrived.set()


class ScriptedLink:
    """One connection to a scripted backend."""

    mirrors_arguments = False

    def __init__(self, backend: ScriptedBackend, listener: Listener) -> None:
        self.backend, self.listener = backend, listener
        self.facts = backend.facts
        self.closed: asyncio.Future[LinkEnd] = asyncio.get_running_loop().create_future()
        self.log_level: str | None = None
        self.leaves_session = False
        self._process: JsonObject | None = {"pid": next(backend.pids)} if backend.is_process else None

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        if self.closed.done():
            raise LinkError(LinkFailure.CLOSED, self.closed.result().reason, may_have_run=False)
        params = params or {}
        self.backend.seen.append((method, params))
        scripted = self.backend.answers.get(method)
        if scripted is not None:
            result = scripted(params)
            return await result if isinstance(result, Awaitable) else result
        asked = Asked(method, params, origin, asyncio.get_running_loop().create_future())
        self.backend.arrive(asked)
        try:
            either: set[asyncio.Future[Any]] = {asked.answer, self.closed}
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self.backend.cancelled.append(asked)
            raise
        if asked.answer.done():
            return asked.answer.result()
        raise LinkError(LinkFailure.CLOSED, self.closed.result().reason)

    @property
    def is_busy(self) -> bool:
        return self.backend.is_busy

    @property
    def identity(self) -> str | None:
        return self.backend.identity

    @property
    def resumption(self) -> object | None:
        return self.backend.resumption

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        self.backend.seen.append((method, params or {}))

    async def send_answer(self, message: JsonObject) -> None:
        if self.closed.done():
            raise LinkError(LinkFailure.CLOSED, self.closed.result().reason)
        self.backend.answered.append(message)

    def leave_session(self) -> None:
        self.leaves_session = True

    def set_log_level(self, level: str) -> None:
        self.log_level = level

    async def close(self) -> None:
        self.end(CLOSED)
        if self.backend.closes is not None:
            await asyncio.shield(self.backend.closes)

    def process(self) -> JsonObject | None:
        return self._process

    def crash(self, code: int = 1) -> None:
        """The process behind it exits."""
        self._process = {**(self._process or {}), "exitCode": code, "stderrTail": ["farewell"]}
        self.break_off(f"exited with code {code}")

    def acknowledge(self, listen: Asked) -> None:
        """Send what a 2026-07-28 backend sends once a listen is in force."""
        self.listener.handle_notification(ACKNOWLEDGED, {}, listen.origin)

    def break_off(self, reason: str) -> None:
        self.end(LinkEnd(LinkEndKind.LOST, reason))

    def end(self, end: LinkEnd) -> None:
        if not self.closed.done():
            self.closed.set_result(end)


class ScriptedDialer:
    """Connects by name to the scripted backends it was given, and shares links as the real one does."""

    def __init__(self, **backends: ScriptedBackend) -> None:
        self.backends = dict(backends)
        self.figures = BackendMetrics()
        self.eras = EraMemory(SystemClock())
        self._shared = SharedLinks()
        self.recordings = Recordings(SystemClock(), Limits())

    def roots_of(self, spec: BackendSpec) -> tuple[str, ...]:
        return spec.roots

    async def dial(
        self,
        spec: BackendSpec,
        listener: Listener,
        *,
        principal: str = "",
        caller_id: str | None = None,
        resumption: object | None = None,
        authorizer: Authorizer | None = None,
        recorder: Recorder | None = None,
        occupant: object | None = None,  # no process runs here, so none is evicted
    ) -> Link:
        if recorder is not None:
            return await dial_recorded(partial(self._open, spec, caller_id, resumption), listener, [recorder])
        if spec.is_shared:
            last = resumption if isinstance(resumption, SharedResumption) else SharedResumption(None)

            def open_shared(all_users: Listener, _: TokenSource) -> Awaitable[Link]:
                return self._open(spec, None, last.resumption, all_users)

            return await self._shared.join(spec, principal, listener, open_shared, tasks=last.tasks)
        return await self._open(spec, caller_id, resumption, listener)

    async def _open(
        self, spec: BackendSpec, caller_id: str | None, resumption: object | None, listener: Listener
    ) -> Link:
        backend = self.backends[spec.name]
        backend.dials.append(Dialled(caller_id, resumption))
        if backend.opens is not None:
            await asyncio.shield(backend.opens)
        if backend.refuses is not None:
            raise backend.refuses
        link = ScriptedLink(backend, listener)
        if "legacy" in (spec.mode, self.eras.recall(spec.target)):
            link.facts = replace(link.facts, is_modern=False)
        backend.links.append(link)
        return link
