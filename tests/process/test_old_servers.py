"""Servers on the Python SDK before 1.9 exit when probed for the era. They are connected all the same."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from emceepee.backends import negotiation
from emceepee.backends.dialer import Dialer
from emceepee.backends.link import Link, LinkError, RpcError
from emceepee.backends.spec import BackendSpec, HttpTarget, Mode, StdioTarget
from emceepee.clock import SystemClock
from support.backends.raw_links import a_dialer
from support.backends.scripted_listener import ScriptedListener
from support.callers.recorder import recorded
from support.server_programs.stdio_entries import stdio_server
from support.system.web_application import running_application

HELLO = {"protocolVersion": "2024-11-05", "capabilities": {}, "serverInfo": {"name": "old", "version": "1"}}


@pytest.fixture
async def dialer(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Dialer]:
    monkeypatch.setattr(negotiation, "PROBE_SECONDS", 0.5)
    async with a_dialer(SystemClock()) as running:
        yield running


def old_program(word: str, seen: Path, mode: Mode = "auto") -> BackendSpec:
    entry = stdio_server(word, f"seen={seen}")
    target = StdioTarget(command=entry["command"], args=tuple(entry["args"]))
    return BackendSpec(name="x", target=target, mode=mode)


async def era_of(dialer: Dialer, spec: BackendSpec) -> str:
    async with asyncio.timeout(30):
        link: Link = await dialer.dial(spec, ScriptedListener())
        await link.close()
    return link.facts.protocol_version


class OldSse:
    """The older transport at /sse; a stream ends when its client asks for the era."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[str] = []
        self._streams: dict[str, asyncio.Queue[dict[str, Any] | None]] = {}

    async def stream(self, request: web.Request) -> web.StreamResponse:
        key = str(len(self._streams))
        says = self._streams[key] = asyncio.Queue()
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(f"event: endpoint\ndata: /messages?s={key}\n\n".encode())
        while (message := await says.get()) is not None:
            await response.write(b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n")
        return response

    async def take(self, request: web.Request) -> web.Response:
        message, says = await request.json(), self._streams[request.query["s"]]
        self.asked.append(message["method"])
        if message["method"] == "server/discover":
            says.put_nowait(None)
        elif message["method"] == "initialize":
            says.put_nowait({"jsonrpc": "2.0", "id": message["id"], "result": HELLO})
        return web.Response(status=202)


@asynccontextmanager
async def an_old_sse_server() -> AsyncIterator[OldSse]:
    server, app = OldSse(), web.Application()
    app.router.add_get("/sse", server.stream)
    app.router.add_post("/messages", server.take)
    async with running_application(app) as port:
        server.url = f"http://127.0.0.1:{port}/sse"
        yield server


@pytest.mark.parametrize("word", ["old", "older"])
async def test_a_program_that_exits_when_probed_is_restarted_and_initialized(
    word: str, dialer: Dialer, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    assert await era_of(dialer, old_program(word, seen)) == "2025-11-25"
    assert seen.read_text().split() == ["server/discover", "initialize", "notifications/initialized"]
    seen.unlink()
    assert await era_of(dialer, old_program(word, seen)) == "2025-11-25"
    assert seen.read_text().split() == ["initialize", "notifications/initialized"]


@pytest.mark.parametrize("kind", ["sse", "any"])
async def test_a_stream_that_ends_when_probed_is_reopened_and_initialized(kind: Any, dialer: Dialer) -> None:
    async with an_old_sse_server() as server:
        spec = BackendSpec(name="x", target=HttpTarget(url=server.url, kind=kind))
        assert await era_of(dialer, spec) == "2024-11-05"
        assert server.asked == ["server/discover", "initialize", "notifications/initialized"]


async def test_a_forced_mode_does_not_update_the_era_memory(dialer: Dialer, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    assert await era_of(dialer, old_program("older", seen, mode="legacy")) == "2025-11-25"
    seen.unlink()
    await era_of(dialer, old_program("older", seen))
    assert seen.read_text().split()[0] == "server/discover"


async def test_a_forced_mode_is_not_replaced_after_a_failure(dialer: Dialer, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    with pytest.raises((LinkError, RpcError)):
        await era_of(dialer, old_program("older", seen, mode="2026-07-28"))
    assert seen.read_text().split() == ["server/discover"]


async def test_the_error_of_a_forced_mode_names_the_mode() -> None:
    async with recorded() as emceepee:
        error = await emceepee.call("add_server", name="one", mode="2026-07-28", **stdio_server("older"))
        message = error["structuredContent"]["error"]["message"]
        assert 'only mode "2026-07-28" was tried; omit mode' in message
        await emceepee.value("add_server", name="one", **stdio_server("older"))
        assert await emceepee.text("echo", text="here") == "here"
