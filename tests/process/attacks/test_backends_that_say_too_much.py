"""Backends that send endless notifications and log messages: the stored part stays small."""

import sys
from typing import Any

import pytest

from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller, http_process
from support.faults.strain import strain_on
from support.server_programs import flooding

PIECE = 900_000


def flooding_server() -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-S", "-E", flooding.__file__], "env": {"FLOOD_BYTES": str(PIECE)}}


async def flood(caller: HttpCaller, **how: Any) -> None:
    result = await caller.call("execute_tool", server="flood", tool="flood", args=how)
    assert not result.get("isError"), result


@pytest.mark.parametrize(("what", "count"), [("notification", 400), ("log", 600)])
async def test_the_size_of_stored_messages_of_a_backend_is_bounded(what: str, count: int) -> None:
    options = ("--log-level", "error", "--state", "memory")  # on their way to the disk they take some more
    async with http_process(*options, env=configured({"flood": flooding_server()})) as endpoint:
        caller = await endpoint.caller()
        await caller.value("list_tools")
        async with strain_on(endpoint) as strain:
            await flood(caller, what=what, count=count)
            listed = await caller.call("list_servers")
        strain.check()
        assert len(str(listed)) < 100_000
        kept = await caller.value("get_notifications" if what == "notification" else "get_logs")
        assert len(str(kept)) < 9 << 20
        assert kept["dropped"] > count / 2
