"""Backends that crash, hang, send garbage, refuse, and lose sessions, behind a real emceepee."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_asyncio

from support.backends.http_backend import BIG, HttpBackend, http_backend
from support.callers.emceepee_process import EmceepeeProcess, configured, emceepee
from support.server_programs.stdio_entries import gone, is_running, pid_in, stdio_server
from support.sessions.replies import text_of
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

AT_ONCE = 10.0  # seconds: far below the 30 that a connect may take, and enough on a busy machine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def caller() -> AsyncIterator[EmceepeeProcess]:
    """One emceepee that has to live through everything here."""
    async with emceepee() as running:
        await running.initialize()
        yield running
        assert (await running.value("list_servers"))["servers"] == []
        assert await running.end() == 0
        assert running.stdout_garbage == []


async def add(caller: EmceepeeProcess, name: str, entry: dict[str, Any]) -> None:
    await caller.value("add_server", name=name, **entry)


async def execute(caller: EmceepeeProcess, server: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return await caller.call("execute_tool", server=server, tool=tool, args=arguments)


async def execution_error(caller: EmceepeeProcess, server: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return await caller.error("execute_tool", server=server, tool=tool, args=arguments)


async def status_of(caller: EmceepeeProcess, name: str) -> str:
    return str((await caller.value("get_server_status", server=name))["status"])


# Processes that do not come up.


async def test_a_backend_that_exits_at_start_is_reported_at_once_with_its_stderr(caller: EmceepeeProcess) -> None:
    async with asyncio.timeout(AT_ONCE):
        error = await caller.error("add_server", name="broken", **stdio_server("exits=3"))
    assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
    for words in ("exited with code 3", "cannot find the configuration", "set THE_TOKEN and try again"):
        assert words in error["message"]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "no-such-program-anywhere"}, "no-such-program-anywhere"),
        ({"command": "/no/such/program"}, "/no/such/program"),
        ({"command": "/etc"}, "Permission denied"),
        (stdio_server() | {"cwd": "/no/such/directory"}, "/no/such/directory"),
    ],
    ids=["not on the path", "no such file", "not executable", "no such directory"],
)
async def test_a_program_that_cannot_be_started_is_named_in_the_error(
    entry: dict[str, Any], words: str, caller: EmceepeeProcess
) -> None:
    async with asyncio.timeout(AT_ONCE):
        error = await caller.error("add_server", name="nothing", **entry)
    assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
    assert words in error["message"]


@pytest.mark.parametrize("behavior", ["polite", "deaf"])
async def test_a_backend_that_never_answers_times_out_and_leaves_no_process(behavior: str, tmp_path: Path) -> None:
    marker, grandchild = tmp_path / "silent", tmp_path / "grandchild"
    entry = stdio_server("silent", behavior, f"marker={marker}", f"forks={grandchild}")
    async with emceepee(env=configured({}, connect_seconds=1)) as caller:
        await caller.initialize()
        async with asyncio.timeout(AT_ONCE):
            error = await caller.error("add_server", name="silent", **entry)
        assert "did not answer within 1 s" in error["message"]
        await gone(await pid_in(marker), await pid_in(grandchild))
        assert (await caller.value("list_servers"))["servers"] == []


HELP = """
import sys
print("Error: An access token was not provided", file=sys.stderr)
for number in range(60):
    print(f"  --option-{number}  Sets it", file=sys.stderr)
sys.exit(1)
"""
HANGING = """
import sys
print("waiting for the lock of another process", file=sys.stderr, flush=True)
sys.stdin.read()
"""


async def test_a_cause_before_a_long_help_text_is_in_the_error(caller: EmceepeeProcess) -> None:
    error = await caller.error("add_server", name="helpful", command=sys.executable, args=["-c", HELP])
    assert "its stderr: Error: An access token was not provided |" in error["message"]
    assert "lines left out) |" in error["message"]
    assert "--option-59" in error["message"]


async def test_a_backend_that_never_answers_times_out_with_its_stderr_in_the_error() -> None:
    async with emceepee(env=configured({}, connect_seconds=1)) as caller:
        await caller.initialize()
        error = await caller.error("add_server", name="hanging", command=sys.executable, args=["-c", HANGING])
    assert "did not answer within 1 s" in error["message"]
    assert "; its stderr: waiting for the lock of another process" in error["message"]


async def test_adding_a_server_can_be_canceled_and_leaves_nothing_behind(
    caller: EmceepeeProcess, tmp_path: Path
) -> None:
    marker = tmp_path / "silent"
    adding = {"name": "add_server", "arguments": {"name": "silent", **stdio_server("silent", f"marker={marker}")}}
    caller.send_line(json.dumps({"jsonrpc": "2.0", "id": "add", "method": "tools/call", "params": adding}).encode())
    pid = await pid_in(marker)
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "add"}}
    caller.send_line(json.dumps(cancel).encode())
    await gone(pid)
    assert (await caller.value("list_servers"))["servers"] == []
    await add(caller, "silent", stdio_server())  # its name is free again
    await caller.value("remove_server", name="silent")


async def test_a_configured_backend_that_exits_is_listed_with_its_last_stderr() -> None:
    """The caller did not add the backend, so list_servers shows the failure, and get_logs its stderr."""
    once = {"restartConfig": {"enabled": False}}
    async with emceepee(env=configured({"broken": stdio_server("exits=4") | once})) as caller:
        await caller.initialize()

        async def has_failed() -> bool:
            return await status_of(caller, "broken") == "error"

        await eventually(has_failed, what="the failure is shown", within=AT_ONCE)
        shown = (await caller.value("list_servers"))["servers"][0]
        assert "exited with code 4" in shown["lastError"]
        logs = (await caller.value("get_logs", server="broken", sources=["stderr"]))["logs"]
        words = ["cannot find the configuration", "set THE_TOKEN and try again"]
        assert [line["data"] for line in logs] == words * 2  # it might have been the question for its era
        error = await execution_error(caller, "broken", "echo")
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert "exited with code 4" in error["message"]


async def test_a_backend_that_dies_during_a_call_fails_that_call_with_its_last_stderr(caller: EmceepeeProcess) -> None:
    await add(caller, "mortal", stdio_server())
    async with asyncio.timeout(AT_ONCE):
        error = await execution_error(caller, "mortal", "exit", code=7)
    assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
    assert "exited with code 7" in error["message"]
    assert "told to go" in error["message"]
    assert text_of(await execute(caller, "mortal", "echo", text="back")) == "back"
    await caller.value("remove_server", name="mortal")


# Processes that do not go.


async def test_remove_server_kills_a_backend_that_ignores_end_of_input_and_sigterm(
    caller: EmceepeeProcess, tmp_path: Path
) -> None:
    await add(caller, "deaf", stdio_server("deaf", f"marker={tmp_path / 'deaf'}"))
    pid = await pid_in(tmp_path / "deaf")
    assert is_running(pid)
    async with asyncio.timeout(AT_ONCE):
        assert await caller.value("remove_server", name="deaf") == {"removed": "deaf"}
    assert not is_running(pid)


async def test_a_backend_that_stops_reading_can_be_removed_during_a_call(
    caller: EmceepeeProcess, tmp_path: Path
) -> None:
    """The pending writes exceed the pipe buffer. The call fails, and the process is stopped."""
    marker = tmp_path / "plugged"
    await add(caller, "plugged", stdio_server("plugged", f"marker={marker}"))
    call = asyncio.create_task(execution_error(caller, "plugged", "echo", text="x" * (4 << 20)))
    await caller.value("list_servers")  # answered after the call was taken up
    async with asyncio.timeout(AT_ONCE):
        await caller.value("remove_server", name="plugged")
        assert (await call)["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
    assert not is_running(await pid_in(marker))


@pytest.mark.parametrize("behavior", ["polite", "stubborn"])
async def test_a_backend_that_forks_leaves_no_grandchild(
    behavior: str, caller: EmceepeeProcess, tmp_path: Path
) -> None:
    """Its child processes end if it is removed or if it dies by itself."""
    for ending in ("removed", "dead"):
        child, grandchild = tmp_path / f"child {ending}", tmp_path / f"grandchild {ending}"
        await add(caller, "forking", stdio_server(behavior, f"marker={child}", f"forks={grandchild}"))
        pids = await pid_in(child), await pid_in(grandchild)
        assert all(map(is_running, pids))
        if ending == "dead":
            await execution_error(caller, "forking", "exit", code=1)
            await gone(*pids)
        await caller.value("remove_server", name="forking")
        await gone(*pids)


# Processes that say too much.


async def test_invalid_lines_on_stdout_are_logged_and_do_no_harm(caller: EmceepeeProcess) -> None:
    await add(caller, "noisy", stdio_server("noisy"))
    assert text_of(await execute(caller, "noisy", "echo", text="still here")) == "still here"
    logs = (await caller.value("get_logs", server="noisy", sources=["stdout"]))["logs"]
    said = [line["data"] for line in logs]
    assert said[:4] == ["starting up...", "{not json}", "\ufffd\ufffd bytes that are no UTF-8", "42"]
    assert set(said[4:]) == {"about to answer"}
    assert {line["source"] for line in logs} == {"stdout"}
    await caller.value("remove_server", name="noisy")


async def test_a_flood_on_stderr_does_not_block_the_backend(caller: EmceepeeProcess) -> None:
    """Two megabytes precede the answer, half of them in one line. The newest lines are kept, the others counted."""
    await add(caller, "flooding", stdio_server())
    async with asyncio.timeout(AT_ONCE):
        assert text_of(await execute(caller, "flooding", "flood")) == "flooded"

    async def is_all_read() -> bool:
        kept = await caller.value("get_logs", server="flooding", sources=["stderr"], clear=False, limit=1)
        return "65536 bytes" in kept["logs"][-1]["data"]

    await eventually(is_all_read, what="the long line is noted")
    kept = await caller.value("get_logs", server="flooding", limit=10_000)
    assert [line["data"] for line in kept["logs"][:-1]] == ["drip"] * 499
    await caller.value("remove_server", name="flooding")


# Names that do not exist.


async def test_errors_for_unknown_names_suggest_similar_ones(caller: EmceepeeProcess) -> None:
    await add(caller, "weather", stdio_server())
    unknown_server = await execution_error(caller, "weatherx", "echo")
    assert unknown_server["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
    assert unknown_server["details"]["near"] == ["weather"]
    assert "Did you mean weather?" in unknown_server["message"]
    unknown_tool = await execution_error(caller, "weather", "ecko")
    assert unknown_tool["code"] == "TOOL_ERR_NOT_FOUND"
    assert unknown_tool["details"]["near"] == ["echo"]
    assert "Did you mean echo?" in unknown_tool["message"]
    await caller.value("remove_server", name="weather")


# HTTP.


@pytest_asyncio.fixture(loop_scope="module", params=["json", "sse"])
async def backend(request: pytest.FixtureRequest, caller: EmceepeeProcess) -> AsyncIterator[HttpBackend]:
    """A server that answers as JSON or as a stream, added as "web"."""
    async with http_backend(request.param) as running:
        await add(caller, "web", {"url": running.url})
        yield running
        await caller.value("remove_server", name="web")
        assert running.sessions == set()  # the last one was ended with a DELETE


async def test_a_failing_call_does_not_affect_concurrent_calls(backend: HttpBackend, caller: EmceepeeProcess) -> None:
    """A refused POST, an HTML page, and a cut connection each fail only their own call."""
    neighbor = asyncio.create_task(execute(caller, "web", "wait"))
    await asyncio.wait_for(backend.arrived.wait(), AT_ONCE)
    refused = await execution_error(caller, "web", "refuse", status=500)
    assert (refused["code"], "HTTP 500" in refused["message"]) == ("TOOL_ERR_EXECUTION_FAILED", True)
    paged = await execution_error(caller, "web", "page")
    assert (paged["code"], "not JSON" in paged["message"]) == ("TOOL_ERR_EXECUTION_FAILED", True)
    cut = await execution_error(caller, "web", "cut")
    assert cut["code"] in ("TOOL_ERR_SERVER_DISCONNECTED", "TOOL_ERR_EXECUTION_FAILED")
    assert await status_of(caller, "web") == "connected"
    assert not neighbor.done()
    backend.release.set()
    assert text_of(await neighbor) == "waited"
    assert text_of(await execute(caller, "web", "echo", text="fine")) == "fine"


async def test_a_result_of_five_megabytes_arrives_complete(backend: HttpBackend, caller: EmceepeeProcess) -> None:
    assert text_of(await execute(caller, "web", "big")) == "ü" * (BIG // 2)


async def test_http_connections_to_a_backend_are_reused(backend: HttpBackend, caller: EmceepeeProcess) -> None:
    """Fifty consecutive calls need no more connections than the handshake."""
    before = len(backend.peers)
    assert before <= 2  # one for requests, one for the attempt to open a push stream
    for number in range(50):
        assert text_of(await execute(caller, "web", "echo", text=str(number))) == str(number)
    assert len(backend.peers) == before


async def test_a_call_that_finds_its_session_lost_opens_a_new_one_and_runs(
    backend: HttpBackend, caller: EmceepeeProcess
) -> None:
    backend.sessions.clear()
    assert text_of(await execute(caller, "web", "echo", text="anyone?")) == "anyone?"
    assert len(backend.sessions) == 1


async def test_a_redirect_within_the_origin_is_followed_by_a_real_emceepee(caller: EmceepeeProcess) -> None:
    async with http_backend() as backend:
        await add(caller, "moved", {"url": backend.url.replace("/mcp", "/moved")})
        assert text_of(await execute(caller, "moved", "echo", text="found")) == "found"
        assert backend.requests.count("/moved") == 1  # the new address is remembered
        await caller.value("remove_server", name="moved")


async def test_a_redirect_to_another_origin_is_refused_without_sending_anything(caller: EmceepeeProcess) -> None:
    """The headers may hold a credential."""
    async with http_backend() as backend, http_backend() as other:
        url = backend.url.replace("/mcp", "/elsewhere") + f"?to={quote(other.url)}"
        error = await caller.error("add_server", name="elsewhere", url=url, headers={"authorization": "Bearer x"})
        assert "HTTP 307" in error["message"]
        assert other.url in error["message"]
        assert other.requests == []


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
async def test_an_error_response_to_the_connection_is_quoted_with_its_status(
    status: int, caller: EmceepeeProcess
) -> None:
    """The error has the status and the start of the page, and comes before the connect timeout."""
    async with http_backend() as backend:
        url = backend.url.replace("/mcp", f"/status/{status}")
        async with asyncio.timeout(AT_ONCE):
            error = await caller.error("add_server", name="refusing", url=url)
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert f"HTTP {status}" in error["message"]
        assert "Gateway trouble" in error["message"]


async def test_a_server_that_requires_a_login_without_offering_one_is_reported_with_the_remedy(
    caller: EmceepeeProcess,
) -> None:
    async with http_backend() as backend:
        async with asyncio.timeout(AT_ONCE):
            error = await caller.error("add_server", name="locked", url=backend.url.replace("/mcp", "/status/401"))
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert "it requires a login, which failed" in error["message"]
        assert "token" in error["message"]


async def test_a_web_page_instead_of_a_server_is_recognized(caller: EmceepeeProcess) -> None:
    async with http_backend() as backend:
        async with asyncio.timeout(AT_ONCE):
            error = await caller.error("add_server", name="page", url=backend.url.replace("/mcp", "/status/200"))
        assert "not JSON" in error["message"]


async def test_an_address_without_a_listener_is_named_in_the_error(caller: EmceepeeProcess) -> None:
    async with http_backend() as backend:
        url = backend.url
    async with asyncio.timeout(AT_ONCE):
        error = await caller.error("add_server", name="nobody", url=url)
    assert "cannot be reached" in error["message"]
    assert url.split("/")[2] in error["message"]
