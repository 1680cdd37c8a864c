"""A session with scripted backends, called through the same dispatch as any caller's."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.session_key import SessionKey
from emceepee.telemetry.journal import SpanObserver
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend, ScriptedDialer
from support.fakes.clock import FakeClock, settle
from support.sessions.event_delivery import take
from support.sessions.replies import own_part, without_help
from support.sessions.request_contexts import call_tool
from support.sessions.result_types import check_result
from support.sessions.session_parts import close_scripts, session_parts

BOUND = 10.0  # seconds of real time that any one reply may take in these scenes


class Scene:
    """The clock, the backends and one session, for a test to play with."""

    def __init__(
        self,
        session: Session,
        clock: FakeClock,
        backends: dict[str, ScriptedBackend],
        parts: SessionParts | None = None,
    ) -> None:
        """A backend that is put into `backends` later can also be connected."""
        self.session, self.clock, self.backends = session, clock, backends
        self._parts = parts

    @property
    def parts(self) -> SessionParts:
        """The parts of the session, for a second session, and for what the operator changes."""
        assert self._parts is not None, "only a_scene knows the parts"
        return self._parts

    async def call(self, tool: str, /, *, caller: RequestContext | None = None, **arguments: Any) -> JsonObject:
        """The whole result of one tool call."""
        async with asyncio.timeout(BOUND):
            return await call_tool({"name": tool, "arguments": arguments}, self.session, caller)

    async def value(self, tool: str, /, **arguments: Any) -> JsonObject:
        """The structured content of a call that must succeed, without notices."""
        result = await self.call(tool, **arguments)
        assert not result.get("isError"), result
        structured = cast(JsonObject, result["structuredContent"])
        value = structured if tool == "await_activity" else own_part(structured)
        check_result(tool, value)
        return value

    async def error(self, tool: str, /, **arguments: Any) -> JsonObject:
        """The error of a call that must fail, without the address of the page about it."""
        result = await self.call(tool, **arguments)
        assert result.get("isError"), result
        return without_help(result["structuredContent"]["error"])

    def quiet(self) -> "Scene":
        """Deliver all events so far, so that the next reply carries no news."""
        take(self.session.activity)
        return self

    def events(self) -> list[tuple[str, JsonObject]]:
        """Return type and data of the events since the last call, and mark them as delivered."""
        return [(str(event.type), event.data) for event in take(self.session.activity).events]

    def event_types(self) -> list[str]:
        return [kind for kind, _ in self.events()]

    def status(self, server: str) -> str:
        """Return the state of a server in list_servers."""
        return str(self.session.connection(server).state.status)

    def start(
        self, tool: str, /, *, caller: RequestContext | None = None, **arguments: Any
    ) -> "asyncio.Task[JsonObject]":
        """Begin a call and go on."""
        return asyncio.create_task(self.call(tool, caller=caller, **arguments))


def scripted_spec(name: str, *, is_process: bool = False) -> BackendSpec:
    target = StdioTarget(command=name) if is_process else HttpTarget(url=f"http://{name}.test/mcp")
    return BackendSpec(name=name, target=target)


@asynccontextmanager
async def a_scene(
    *,
    limits: Limits | None = None,
    specs: list[BackendSpec] | None = None,
    is_awake: bool = True,
    keys: frozenset[SessionKey] = frozenset(),
    observers: tuple[SpanObserver, ...] = (),
    **backends: ScriptedBackend,
) -> AsyncIterator[Scene]:
    """A session whose backends are scripted. Every named backend is configured, and if it is awake, connected."""
    clock = FakeClock()
    if specs is None:
        specs = [scripted_spec(name, is_process=backend.is_process) for name, backend in backends.items()]
    limits = limits or Limits()
    registry = ServerRegistry(specs)
    dialer = ScriptedDialer(**backends)
    parts = session_parts(registry, dialer, clock, limits, observers=observers)
    session = Session("01TESTSESSION0000000000000", "local", parts)
    session.keys = keys
    await session.open()
    if is_awake:
        session.wake()
    await settle()
    try:
        yield Scene(session, clock, dialer.backends, parts)
    finally:
        await session.close()
        await close_scripts(parts)
