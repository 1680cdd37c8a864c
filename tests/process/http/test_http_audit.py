"""The audit log of a real server."""

import json
from pathlib import Path

import pytest

from support.callers.http_process import http_process

pytestmark = pytest.mark.asyncio(loop_scope="module")
TOKEN = "a-token-that-is-long-enough"


async def test_the_audit_log_contains_every_call_including_rejected_ones_after_a_stop(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with http_process("--audit-log", str(path), "--token", f"ann={TOKEN}") as endpoint:
        caller = await endpoint.caller(authorization=f"Bearer {TOKEN}")
        await caller.value("list_servers")
        await caller.error("execute_tool", server="nowhere", tool="send", args={"secret": "hunter2"})
        await caller.request("tools/call", {"name": "make_coffee", "arguments": {"secret": "hunter2"}})
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["principal"], line["name"], line["outcome"]) for line in lines] == [
        ("ann", "list_servers", "success"),
        ("ann", "send", "error"),
        ("ann", "make_coffee", "error"),
    ]
    assert "hunter2" not in path.read_text()
    assert TOKEN not in path.read_text()
