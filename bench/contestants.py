"""Who takes part, how each is started, and what each can do."""

import asyncio
import atexit
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import uvloop

from bench.load.http import call_for
from bench.load.http_client import HttpSession
from bench.load.sample import Sample, WrongAnswer
from bench.load.stdio import StdioCallers
from bench.processes import ROOT, Child, Launch, free_port, module, our_core, printing_its_port, running, source_tree
from bench.work import SMALL, Era, Json, Shape, Size, Wire, mark_of

START_SECONDS = 60.0  # for a contestant to listen
ASK_AGAIN_SECONDS = 0.003  # while it does not
ARGUMENTS = {"note": "a small argument"}
BACKEND = "backend"  # its name in emceepee's configuration
STDIO = "-"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a contestant listens and what it finds behind it, both in words that fit on a command line."""

    era: Era
    front: str  # a port, or `-`
    back: str  # a URL, or a command as a JSON list


def _tool_environment(name: str) -> Path:
    return ROOT / ".tools" / name / "bin"


def _relay(place: Place) -> Launch:
    return module("bench.relay", place.era, place.front, place.back)


def emceepee(servers: Json, front: str, *options: str, **limits: float) -> Launch:
    """emceepee with these servers. Its state is where it usually is, but not in the user's own."""
    config = json.dumps({"mcpServers": servers, "limits": limits})
    door = () if front == STDIO else ("serve", "--port", front)
    command = (sys.executable, "-m", "emceepee", *door, "--log-level", "warn", *options)
    return Launch(command, source_tree() | {"EMCEEPEE_CONFIG": config, "XDG_STATE_HOME": _state_directory()})


@cache
def _state_directory() -> str:
    directory = TemporaryDirectory(prefix="emceepee-bench-")
    atexit.register(directory.cleanup)
    return directory.name


def server_entry(back: str, era: Era) -> Json:
    """The configuration of one backend."""
    mode = era if era is Era.MODERN else "legacy"
    if back.startswith("http"):
        return {"type": "http", "url": back, "mode": mode}
    command, *arguments = json.loads(back)
    return {"command": command, "args": arguments, "env": source_tree(), "mode": mode}


def _emceepee(place: Place) -> Launch:
    return emceepee({BACKEND: server_entry(place.back, place.era)}, place.front)


def _fastmcp(place: Place) -> Launch:
    script = str(Path(__file__).with_name("peers") / "fastmcp_proxy.py")
    return Launch((str(_tool_environment("fastmcp") / "python"), script, place.front, place.back), source_tree())


def _mcp_proxy(place: Place) -> Launch:
    program = str(_tool_environment("mcp-proxy") / "mcp-proxy")
    if place.front == STDIO:
        return Launch((program, "--transport", "streamablehttp", "--log-level", "ERROR", place.back), source_tree())
    options = ("--port", place.front, "--pass-environment", "--log-level", "ERROR", "--")
    return Launch((program, *options, *json.loads(place.back)), source_tree())


def _plain_call(size: Size) -> tuple[str, Json]:
    return size.tool, ARGUMENTS


def _call_through_emceepee(size: Size) -> tuple[str, Json]:
    return "execute_tool", {"server": BACKEND, "tool": size.tool, "args": ARGUMENTS}


def _does_everything(shape: Shape, era: Era) -> bool:
    return True


def _bridges_old_transports(shape: Shape, era: Era) -> bool:
    return shape.front is not shape.back and era is Era.HANDSHAKE


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """One contestant of a comparison."""

    name: str
    launch: Callable[[Place], Launch] | None  # None: the backend itself
    call: Callable[[Size], tuple[str, Json]] = _plain_call
    can: Callable[[Shape, Era], bool] = _does_everything
    program: Path | None = None  # must exist

    @property
    def is_installed(self) -> bool:
        return self.program is None or self.program.exists()


DIRECT = Contestant(name="direct", launch=None)
RELAY = Contestant(name="relay", launch=_relay)
EMCEEPEE = Contestant(name="emceepee", launch=_emceepee, call=_call_through_emceepee)
FASTMCP = Contestant(name="fastmcp", launch=_fastmcp, program=_tool_environment("fastmcp") / "python")
MCP_PROXY = Contestant(
    name="mcp-proxy",
    launch=_mcp_proxy,
    can=_bridges_old_transports,
    program=_tool_environment("mcp-proxy") / "mcp-proxy",
)
CONTESTANTS = (DIRECT, RELAY, EMCEEPEE, FASTMCP, MCP_PROXY)
QUICK_CONTESTANTS = (DIRECT, RELAY, EMCEEPEE)  # the others take seconds for what these do in one


@contextmanager
def backend(wire: Wire, era: Era) -> Iterator[str]:
    """Yield the backend's address, as in `Place.back`. The contestant starts a backend on stdio itself."""
    if wire is Wire.HTTP:
        with printing_its_port(module("bench.backend.http", era)) as port:
            yield f"http://127.0.0.1:{port}/mcp"
    else:
        yield json.dumps(module("bench.backend.stdio", era, *our_core(), quick=True).command)


@dataclass(slots=True)
class HttpDriver:
    """Calls a contestant over HTTP."""

    contestant: Contestant
    child: Child | None
    port: int
    era: Era
    _sessions: list[HttpSession] = field(default_factory=list)

    def open(self) -> None:
        """Returns when it has answered; until it listens, it is asked again and again."""
        uvloop.run(self._first_answer())

    def list_tools(self) -> Json:
        return uvloop.run(self._ask_once("tools/list", {}))

    def load(self, seconds: float, callers: int, size: Size) -> Sample:
        return uvloop.run(self._load(seconds, callers, size))

    async def _first_answer(self) -> None:
        give_up = perf_counter() + START_SECONDS
        while True:
            session = HttpSession(self.port, self.era)
            try:
                await session.open()
                await session.close()
                return
            except OSError:
                if perf_counter() > give_up or (self.child is not None and not self.child.is_running):
                    words = self.child.last_words() if self.child else ""
                    raise WrongAnswer(f"{self.contestant.name} does not listen: {words}") from None
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _ask_once(self, method: str, params: Json) -> Json:
        session = HttpSession(self.port, self.era)
        await session.open()
        result = await session.ask(method, params)
        await session.close()
        return result

    async def _load(self, seconds: float, callers: int, size: Size) -> Sample:
        mark = mark_of(size)
        name, arguments = self.contestant.call(size)
        fresh = []
        while len(self._sessions) < callers:
            session = HttpSession(self.port, self.era, f"caller-{len(self._sessions)}")
            await session.open()
            session.line.close()
            self._sessions.append(session)
            fresh.append(session.call_bytes(*self.contestant.call(SMALL)))
        if fresh:
            await call_for(0, fresh, port=self.port, mark=mark_of(SMALL))
        requests = [session.call_bytes(name, arguments) for session in self._sessions[:callers]]
        spent = self.child.cpu_seconds() if self.child else 0.0
        sample = await call_for(seconds, requests, port=self.port, mark=mark)
        sample.cpu_seconds = self.child.cpu_seconds() - spent if self.child else 0.0
        return sample


@dataclass(slots=True)
class StdioDriver:
    """Calls a contestant over its standard input and output."""

    contestant: Contestant
    child: Child
    era: Era
    _callers: StdioCallers = field(init=False)

    def __post_init__(self) -> None:
        self._callers = StdioCallers(self.child, self.era)

    def open(self) -> None:
        self._callers.open()

    def list_tools(self) -> Json:
        return self._callers.ask("tools/list", {})

    def load(self, seconds: float, callers: int, size: Size) -> Sample:
        name, arguments = self.contestant.call(size)
        spent = self.child.cpu_seconds()
        sample = self._callers.call_for(seconds, callers, name=name, arguments=arguments, mark=mark_of(size))
        sample.cpu_seconds = self.child.cpu_seconds() - spent
        return sample


Driver = HttpDriver | StdioDriver


@contextmanager
def started(contestant: Contestant, shape: Shape, era: Era, back: str) -> Iterator[Driver]:
    """The contestant, started and not yet asked for anything. A direct call speaks the backend's own transport."""
    if contestant.launch is None:
        if shape.back is Wire.HTTP:
            yield HttpDriver(contestant, None, int(back.split(":")[2].split("/")[0]), era)
            return
        launch, front = Launch(json.loads(back), source_tree()), STDIO
    else:
        front = STDIO if shape.front is Wire.STDIO else str(free_port())
        launch = contestant.launch(Place(era, front, back))
    with running(launch, pipes=front == STDIO) as child:
        yield StdioDriver(contestant, child, era) if front == STDIO else HttpDriver(contestant, child, int(front), era)
