"""Fifty backends in one configuration, good and bad: the bad ones do not affect the others."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.backends.http_backend import HttpBackend, http_backend
from support.callers.emceepee_process import EmceepeeProcess, configured, emceepee
from support.server_programs.stdio_entries import gone, is_running, pid_in, stdio_server
from support.sessions.replies import text_of
from support.system.ports import free_port
from support.waiting import eventually

AT_ONCE = 5.0  # seconds, while two dozen processes are being started on the same machine
HANGING = 20.0  # seconds until the hanging ones time out: the test does its work before that
GOOD, OVER_HTTP, CRASHING, SILENT, MISSING, UNREACHABLE = 20, 10, 8, 6, 3, 3
ONCE = {"restartConfig": {"enabled": False}}
TWICE = {"restartConfig": {"maxAttempts": 1, "baseDelayMs": 100}}
TOTAL = GOOD + OVER_HTTP + CRASHING + SILENT + MISSING + UNREACHABLE


def fifty_servers(markers: Path, http: HttpBackend) -> dict[str, dict[str, Any]]:
    """The bad ones come first: a loop over the list in order meets them before the good ones."""
    port = free_port()
    named = {
        **{f"silent-{n}": stdio_server("silent", f"marker={markers / f'silent-{n}'}") | ONCE for n in range(SILENT)},
        **{f"crashing-{n}": stdio_server(f"exits={n + 1}") | TWICE for n in range(CRASHING)},
        **{f"missing-{n}": {"command": f"no-such-program-{n}"} for n in range(MISSING)},
        **{f"unreachable-{n}": {"url": f"http://127.0.0.1:{port}/mcp"} for n in range(UNREACHABLE)},
        **{f"good-{n}": stdio_server(f"marker={markers / f'good-{n}'}") for n in range(GOOD)},
        **{f"http-{n}": {"url": http.url} for n in range(OVER_HTTP)},
    }
    assert len(named) == TOTAL == 50
    return named


async def states(caller: EmceepeeProcess) -> "Counter[tuple[str, str]]":
    """How many servers of each kind are in which state."""
    shown = (await caller.value("list_servers"))["servers"]
    return Counter((server["name"].partition("-")[0], server["status"]) for server in shown)


@pytest.mark.parametrize("when", ["while some still hang", "after all is settled"])
async def test_fifty_good_and_bad_backends_work_side_by_side(when: str, tmp_path: Path) -> None:
    """The list returns at once, good servers work while others hang, and no process is left."""
    patience = HANGING if when == "while some still hang" else 6.5
    async with http_backend() as http:
        servers = fifty_servers(tmp_path, http)
        async with emceepee(env=configured(servers, connect_seconds=patience)) as caller:
            await caller.initialize()
            async with asyncio.timeout(AT_ONCE):
                assert (await states(caller)).total() == TOTAL
            for server in ("good-19", "http-9", "good-0"):
                result = await caller.call("execute_tool", server=server, tool="echo", args={"text": server})
                assert text_of(result) == server
            if when == "while some still hang":
                assert (await states(caller))["silent", "connecting"] == SILENT
            hanging = "connecting" if when == "while some still hang" else "error"
            expected = {
                ("silent", hanging): SILENT,
                ("crashing", "error"): CRASHING,
                ("missing", "error"): MISSING,
                ("unreachable", "reconnecting"): UNREACHABLE,
                ("good", "connected"): GOOD,
                ("http", "connected"): OVER_HTTP,
            }

            async def are_right() -> bool:
                return await states(caller) == expected

            await eventually(are_right, what="every server is in the state it should be in")
            names = [name for name in servers if name.startswith(("good", "silent"))]
            pids = [await pid_in(tmp_path / name) for name in names]
            assert all(is_running(pid) for name, pid in zip(names, pids, strict=True) if name.startswith("good"))
            listed = await caller.value("list_tools", tool="^echo$", detail="names")
            assert len(listed["tools"]) == GOOD + OVER_HTTP
            assert {error["server"] for error in listed["errors"]} == {
                name for name in servers if not name.startswith(("good", "http"))
            }
            assert await caller.end() == 0
            await gone(*pids)
        assert http.sessions == set()
