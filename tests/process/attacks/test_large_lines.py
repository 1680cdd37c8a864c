"""A line over `line_bytes` is an error for its waiting caller only."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from support.callers.emceepee_process import configured, emceepee

LINE_BYTES = 100_000
BOUND = 20.0  # far below the 50 seconds after which a call becomes a task
TALKER = """
import json, sys
ORDERS = {
    "first": ("jsonrpc", "id", "result"),
    "last": ("result", "jsonrpc", "id"),
    "between": ("jsonrpc", "result", "id", "more"),
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    params = message.get("params") or {}
    result, order = {}, ORDERS["first"]
    if message["method"] == "initialize":
        info = {"name": "x", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif message["method"] == "tools/call":
        if params["name"] == "hang":
            continue
        order = ORDERS[params["name"]]
        text = "x" * params["arguments"]["size"]
        result = {"content": [{"type": "text", "text": text, "_meta": {"id": 1}}], "_meta": {"id": 2}}
    whole = {"jsonrpc": "2.0", "id": message["id"], "result": result, "more": {"id": 3}}
    print(json.dumps({key: whole[key] for key in order}), flush=True)
"""


def talker(folder: Path) -> dict[str, str]:
    program = folder / "talker.py"
    program.write_text(TALKER, encoding="utf-8")
    server = {"command": sys.executable, "args": ["-S", str(program)], "mode": "legacy"}
    return configured({"one": server}, line_bytes=LINE_BYTES)


@pytest.mark.parametrize("order", ["first", "last", "between"])
async def test_an_answer_over_the_line_limit_is_an_error_for_its_caller(order: str, tmp_path: Path) -> None:
    async with emceepee(env=talker(tmp_path)) as caller:
        await caller.initialize()

        async def ask(size: int) -> dict[str, Any]:
            call = caller.call("execute_tool", server="one", tool=order, args={"size": size})
            return await asyncio.wait_for(call, BOUND)

        assert not (await ask(LINE_BYTES // 2)).get("isError")
        refused = await ask(LINE_BYTES)
        assert refused["isError"]
        assert "larger than the longest line" in refused["content"][0]["text"]
        assert not (await ask(10)).get("isError")


async def test_an_answer_over_the_line_limit_does_not_fail_other_calls_on_the_same_pipe(tmp_path: Path) -> None:
    async with emceepee(env=talker(tmp_path)) as caller:
        await caller.initialize()
        waiting = asyncio.create_task(caller.call("execute_tool", server="one", tool="hang", timeout_ms=3000))
        call = caller.call("execute_tool", server="one", tool="first", args={"size": LINE_BYTES})
        assert (await asyncio.wait_for(call, BOUND))["isError"]
        assert "proxy_task" in (await asyncio.wait_for(waiting, BOUND))["structuredContent"]


@pytest.mark.parametrize("size", [LINE_BYTES, 50 * LINE_BYTES])
async def test_a_request_over_the_line_limit_is_answered_under_its_own_id(size: int) -> None:
    async with emceepee(env=configured({}, line_bytes=LINE_BYTES)) as caller:
        await caller.initialize()
        answer = await asyncio.wait_for(caller.request("ping", {"filler": "x" * size}), BOUND)
        assert answer["error"]["code"] == -32600
        assert "result" in await caller.request("ping", {})
