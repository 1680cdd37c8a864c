"""Calls at both ends of the ranges that the configuration accepts."""

import json
from dataclasses import fields

import pytest

from emceepee.state.limits import Limits, range_of
from support.backends.web_backend import a_web_backend
from support.callers.emceepee_process import configured
from support.callers.http_process import http_process
from support.server_programs.stdio_entries import stdio_server

NAMES = [item.name for item in fields(Limits)]


# Less than this is a sensible wish, but not that of this test: no timers, short lists, each call a task at once, and no
# server that starts in time on a busy machine.
NEEDED = {
    "timers_per_session": 1,
    **dict.fromkeys(("call_seconds", "quiet_call_seconds", "longest_call_seconds", "list_patience_seconds"), 5),
    **dict.fromkeys(("connect_seconds", "request_seconds", "script_compute_seconds"), 5),
}


def values(end: int) -> dict[str, float]:
    """Each limit at the least (0) or most (1) of its range."""
    whole = {item.name for item in fields(Limits) if item.type is int}
    return {name: int(range_of(name)[end]) if name in whole else range_of(name)[end] for name in NAMES}


@pytest.mark.parametrize("end", [0, 1], ids=["least", "most"])
async def test_calls_work_with_every_limit_at_the_end_of_its_range(end: int) -> None:
    limits = values(end)
    if end == 0:
        limits |= NEEDED
    async with (
        a_web_backend() as web,
        http_process(env=configured({"small": stdio_server(), "web": {"url": web.url}}, **limits)) as endpoint,
    ):
        caller = await endpoint.caller()
        for server in ("small", "web"):
            result = await caller.call("execute_tool", server=server, tool="echo", args={"text": "hello"})
            assert "hello" in json.dumps(result), server
            assert not result.get("isError"), server
        assert (await caller.value("list_tools", detail="names"))["tools"]
        assert (await caller.value("codemode_execute", code="1 + 1"))["result"] == 2
        assert "timerId" in await caller.value("set_timer", duration_ms=1000, message="tick")
        await caller.value("await_activity", timeout_ms=100)
