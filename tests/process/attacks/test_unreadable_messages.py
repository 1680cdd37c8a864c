"""Undecodable messages of a stdio server: only their waiting callers get an error, and at once."""

import asyncio
import sys
from pathlib import Path

import pytest

from support.callers.emceepee_process import configured, emceepee
from support.figures import record_figure

BOUND = 20.0  # seconds: far below the 50 after which a call becomes a task
TALKER = """
import json, sys
PATTERNS = {
    "digits": '{"jsonrpc":"2.0","id":%s,"result":{"n":' + "1" * 5000 + "}}",
    "digits_before_the_id": '{"jsonrpc":"2.0","result":{"n":' + "1" * 5000 + '},"id":%s}',
    "line_break": '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"one\\ntwo"}]}}',
    "batch": '[{"jsonrpc":"2.0","id":%s,"result":{"n":' + "1" * 5000 + "}}]",
    "no_outcome": '{"jsonrpc":"2.0","id":%s}',
    "half": '{"jsonrpc":"2.0","id":%s,"result":{"content":[',
}
calls = []
for line in sys.stdin:
    message = json.loads(line)
    key, method = message.get("id"), message.get("method")
    if method == "initialize":
        info = {"name": "x", "version": "1"}
        result = {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}, "serverInfo": info}
        print(json.dumps({"jsonrpc": "2.0", "id": key, "result": result}), flush=True)
    elif method == "tools/list":
        print(json.dumps({"jsonrpc": "2.0", "id": key, "result": {"tools": []}}), flush=True)
    elif method == "tools/call" and message["params"]["name"] == "ask":
        calls.append(key)
        digits = "1" * 5000
        print('{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"n":%s}}' % digits, flush=True)
    elif key == "q":  # our question was refused: that is the result
        result = {"content": [], "structuredContent": {"refusal": message["error"]}}
        print(json.dumps({"jsonrpc": "2.0", "id": calls.pop(), "result": result}), flush=True)
    elif method == "tools/call" and message["params"]["name"] != "hang":
        print(PATTERNS[message["params"]["name"]] % json.dumps(key), flush=True)
"""
PATTERNS = ("digits", "digits_before_the_id", "line_break", "batch", "no_outcome", "half")


def talker(folder: Path) -> dict[str, str]:
    program = folder / "talker.py"
    program.write_text(TALKER, encoding="utf-8")
    return configured({"one": {"command": sys.executable, "args": ["-S", str(program)], "mode": "legacy"}})


async def test_an_undecodable_answer_ends_its_call_at_once_and_no_other(tmp_path: Path) -> None:
    async with emceepee(env=talker(tmp_path)) as caller:
        await caller.initialize()
        waiting = asyncio.create_task(caller.call("execute_tool", server="one", tool="hang", timeout_ms=15_000))
        loop = asyncio.get_running_loop()
        for pattern in PATTERNS:
            began = loop.time()
            async with asyncio.timeout(BOUND):
                error = await caller.error("execute_tool", server="one", tool=pattern)
            record_figure(f"{pattern}: an error after {loop.time() - began:.3f} s")
            assert "the answer" in error["message"], pattern
        async with asyncio.timeout(BOUND):
            assert "proxy_task" in (await waiting)["structuredContent"]


async def test_an_undecodable_question_is_rejected_and_its_call_continues(tmp_path: Path) -> None:
    async with emceepee(env=talker(tmp_path)) as caller:
        await caller.initialize()
        async with asyncio.timeout(BOUND):
            result = await caller.call("execute_tool", server="one", tool="ask")
        refusal = result["structuredContent"]["refusal"]
        assert (refusal["code"], "4300 digits" in refusal["message"]) == (-32700, True)


@pytest.mark.parametrize("line", ['{"jsonrpc":"2.0","id":7,"method":"ping","params":{"n":%s}}' % ("1" * 5000)])
async def test_an_undecodable_request_is_rejected_under_its_own_id(line: str) -> None:
    async with emceepee() as caller:
        await caller.initialize()
        caller.send_line(line.encode())
        async with asyncio.timeout(BOUND):
            refusal = await caller.next_heard()
        assert (refusal["id"], refusal["error"]["code"]) == (7, -32700)
