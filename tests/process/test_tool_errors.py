"""The error of a tool is its answer, with any text: the call runs once and has no other effect."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.backends.counting_http import CountingBackend
from support.callers.recorder import recorded
from support.figures import record_figure

NEIGHBORS = 10
# Status, JSON-RPC code (0: no JSON) and words of an error that answers the call's own id.
ERRORS = [
    (200, -32000, "Login session expired"),
    (200, -32001, "browser session not found"),
    (200, -32600, "Session not found"),
    (200, -32000, "Bad Request: No valid session ID provided"),
    (400, -32000, "Login session expired"),
    (400, -32602, "unknown parameter: session"),
    (400, 0, "no such session"),
    (500, -32000, "Session terminated"),
    (500, 0, "session store is down"),
]


@asynccontextmanager
async def a_backend() -> AsyncIterator[CountingBackend]:
    backend = CountingBackend("legacy")
    backend.tools = ["echo", "wait", "refuse"]
    await backend.start()
    try:
        yield backend
    finally:
        await backend.stop()


@pytest.mark.parametrize(("status", "code", "words"), ERRORS)
async def test_a_tool_error_with_session_loss_wording_is_passed_on_and_its_call_runs_once(
    status: int, code: int, words: str
) -> None:
    async with a_backend() as backend, recorded({"name": "one", "url": backend.url}) as emceepee:
        await emceepee.text("echo")
        neighbors = [
            asyncio.ensure_future(emceepee.text("wait", id=f"n{number}", text=str(number)))
            for number in range(NEIGHBORS)
        ]
        await backend.until(lambda: backend.waiting == NEIGHBORS)
        failed = await emceepee.execute("refuse", id="call", status=status, code=code, words=words)
        again = await emceepee.text("echo", text="still here")
        backend.release.set()
        unharmed = await asyncio.gather(*neighbors, return_exceptions=True)
        record_figure(
            f"ran {backend.ran['call']} times, {sum(isinstance(n, str) for n in unharmed)} neighbors unharmed"
        )
        error = failed["structuredContent"]["error"]
        assert (backend.ran["call"], error["code"]) == (1, "TOOL_ERR_EXECUTION_FAILED")
        assert words in error["message"]
        if code:
            assert error["details"]["error"] == {"code": code, "message": words}
        assert again == "still here"
        assert unharmed == [str(number) for number in range(NEIGHBORS)]
        assert backend.seen["initialize"] == 1
        assert "server_disconnected" not in emceepee.types


async def test_a_server_with_unusual_session_loss_wording_is_reconnected_on_the_next_call() -> None:
    """The first call is not resent, because the error may come from the tool."""
    async with a_backend() as backend, recorded({"name": "one", "url": backend.url}) as emceepee:
        backend.says_lost = (400, None, -32000, "No active session")
        await emceepee.text("echo")
        backend.forget_sessions()
        error = (await emceepee.execute("echo"))["structuredContent"]["error"]
        assert error["details"]["error"]["message"] == "No active session"
        await emceepee.until("server_reconnected")
        assert await emceepee.text("echo", text="back") == "back"
        assert backend.seen["ping"] == 1
