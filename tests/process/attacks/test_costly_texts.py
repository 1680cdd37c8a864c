"""A text that is expensive to mask for secrets delays no other request."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.callers.http_process import HttpCaller, HttpProcess, http_process
from support.faults.health_probe import a_health_probe
from support.figures import record_figure

pytestmark = pytest.mark.asyncio(loop_scope="module")

LONGEST_WAIT = 0.5 * 5  # seconds, with room for a busy machine
SIZE = 40_000
TALKER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    costly = "https://h/" + "?" * int(sys.argv[2])
    answer = {"error": {"code": -32000, "message": costly}}
    if sys.argv[1] == "stderr":
        info = {"name": "x", "version": "1"}
        answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}}
        if message["method"] == "notifications/initialized":
            sys.stderr.write(f"{costly}\\n" * 3)
            sys.exit(3)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[HttpProcess]:
    async with http_process("--log-level", "debug") as running:
        yield running


def talker(tmp_path: Path, how: str) -> dict[str, Any]:
    program = tmp_path / "talker.py"
    program.write_text(TALKER, encoding="utf-8")
    command = {"command": sys.executable, "args": ["-S", str(program), how, str(SIZE)]}
    return {"name": how, "mode": "legacy", **command}


SERVERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "lines on standard error": lambda path: talker(path, "stderr"),
    "the error of a handshake": lambda path: talker(path, "error"),
    "an address": lambda _: {"name": "address", "url": "http://127.0.0.1:9/" + "?" * SIZE, "mode": "legacy"},
}


@pytest.mark.parametrize("what", SERVERS)
async def test_a_text_that_is_expensive_to_mask_delays_no_other_request(
    what: str, endpoint: HttpProcess, tmp_path: Path
) -> None:
    caller: HttpCaller = await endpoint.caller()
    async with a_health_probe(endpoint.origin) as probe:
        await caller.call("add_server", **SERVERS[what](tmp_path))
        await caller.call("await_activity", timeout_ms=1000)
    record_figure(f"{what}: the longest wait of another was {probe.longest * 1000:.0f} ms")
    assert probe.longest < LONGEST_WAIT
