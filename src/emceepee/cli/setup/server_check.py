"""Test a configured server like a session would: start it or connect to it, list its tools, and close it."""

import asyncio
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.dialer import Dialer
from emceepee.backends.link import Link, LinkError, RpcError
from emceepee.backends.process.child import child_environment
from emceepee.backends.process.search_path import find_program
from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.bounds.files import read_head
from emceepee.cli.setup.diagnosis import Finding, Symptoms, diagnose
from emceepee.clients.sharing_rules import Seen
from emceepee.clock import Clock, give_up_after
from emceepee.lifecycle import CLOSE_LINK_SECONDS, close_bounded
from emceepee.wire.json_types import JsonObject

LINES_KEPT = 200
MOST_PAGES = 100
AT_ONCE = 4  # servers tested concurrently
_METHOD_NOT_FOUND = -32601
# Common program folders that are missing from the PATH of a client started from a desktop.
_USUAL_FOLDERS = (
    *("~/.local/bin", "/usr/local/bin", "/opt/homebrew/bin", "~/.cargo/bin", "~/.bun/bin", "~/.deno/bin"),
    *("~/.volta/bin", "~/.asdf/shims", "~/.local/share/mise/shims", "/usr/bin", "/snap/bin"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCheck:
    """The result of a server's test. `tools` is None if it offers no tools, or was not reached."""

    spec: BackendSpec
    findings: tuple[Finding, ...]
    is_usable: bool
    tools: int | None = None
    protocol_version: str = ""
    seconds: float = 0.0
    seen: Seen | None = None  # None if the server was not reached


async def check_servers(
    specs: Iterable[BackendSpec], dialer: Dialer, clock: Clock, *, patience: float
) -> list[ServerCheck]:
    """Test all servers, and return the results in the given order."""
    places = asyncio.Semaphore(AT_ONCE)

    async def check_in_turn(spec: BackendSpec) -> ServerCheck:
        async with places:
            return await check_server(spec, dialer, clock, patience=patience)

    return list(await asyncio.gather(*map(check_in_turn, specs)))


async def check_server(spec: BackendSpec, dialer: Dialer, clock: Clock, *, patience: float) -> ServerCheck:
    listener = _Listener()
    began = clock.monotonic()
    error: RpcError | LinkError | TimeoutError | None = None
    link: Link | None = None
    tools: list[JsonObject] | None = None
    try:
        async with give_up_after(clock, patience):
            link = await dialer.dial(spec, listener)
            tools = await _list_tools(link)
            seconds = clock.monotonic() - began
    except (RpcError, LinkError, TimeoutError) as failure:
        error = failure
        # Stopping an unresponsive server takes a few more seconds, which do not count.
        seconds = min(clock.monotonic() - began, patience)
    finally:
        if link is not None:
            await close_bounded(link.close(), within=CLOSE_LINK_SECONDS, what=f"the link to {spec.name}")
    seen = _symptoms(spec, listener, error, seconds)
    return ServerCheck(
        spec=spec,
        findings=tuple(diagnose(spec, seen)),
        is_usable=error is None,
        tools=None if tools is None else len(tools),
        protocol_version="" if link is None else link.facts.protocol_version,
        seconds=seconds,
        seen=None if link is None else Seen(tools or (), link.facts.capabilities, listener.asked),
    )


async def _list_tools(link: Link) -> list[JsonObject] | None:
    if "tools" not in link.facts.capabilities:
        return None
    found: list[JsonObject] = []
    cursor: object = None
    for _ in range(MOST_PAGES):
        page = await link.request("tools/list", {} if cursor is None else {"cursor": cursor})
        tools, cursor = page.get("tools"), page.get("nextCursor")
        found += [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
        if not isinstance(cursor, str):
            break
    return found


def _symptoms(
    spec: BackendSpec, listener: "_Listener", error: RpcError | LinkError | TimeoutError | None, seconds: float
) -> Symptoms:
    program = elsewhere = interpreter = None
    if error is not None and isinstance(spec.target, StdioTarget):
        program = _program(spec.target)
        elsewhere = None if program else _elsewhere(spec.target.command)
        interpreter = None if program is None else missing_interpreter(Path(program))
    return Symptoms(
        error=error,
        seconds=seconds,
        stdout=listener.stdout,
        stderr=listener.stderr,
        program=program,
        elsewhere=elsewhere,
        interpreter=interpreter,
    )


def _program(target: StdioTarget) -> str | None:
    if os.sep in target.command:
        path = Path(target.cwd or ".") / target.command
        return str(path) if path.exists() else None
    return find_program(target.command, child_environment(target.env, os.environ).get("PATH"))


def _elsewhere(command: str) -> str | None:
    folders = os.pathsep.join(os.path.expanduser(folder) for folder in _USUAL_FOLDERS)
    return shutil.which(Path(command).name, path=folders)


def missing_interpreter(program: Path) -> str | None:
    """Return the interpreter in the script's first line if it does not exist, else None."""
    try:
        first = read_head(program, 256).partition(b"\n")[0]
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode("utf-8", "replace").split()
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
        return words[0] if words and shutil.which(words[0]) is None else None
    return words[0] if words and not Path(words[0]).exists() else None


class _Listener:
    """Collects output that is not protocol. Rejects all requests of the server, because no user is present."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.stdout: list[str] = []
        self.stderr: list[str] = []

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        if method != "ping":
            self.asked.append(method)
        raise RpcError({"code": _METHOD_NOT_FOUND, "message": "emceepee doctor answers no questions"})

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        pass

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        return None

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        pass

    def handle_output(self, line: str, source: str) -> None:
        kept = self.stdout if source == "stdout" else self.stderr
        if line.strip():
            kept.append(line)
        if len(kept) > LINES_KEPT:
            del kept[1]  # keep the first line and the last ones, which are often the most informative
