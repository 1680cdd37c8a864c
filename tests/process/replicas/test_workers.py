"""`serve --workers N`: several processes at one address that are restarted when they die and stop on request."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from support.callers.http_process import BOUND, HttpCaller, HttpProcess, address_of, http_process, launch
from support.console.http_browser import Browser, links, the_link
from support.server_programs.stdio_entries import stdio_server
from support.system.processes import below, children_of, is_alive
from support.waiting import eventually

COUNT = 2
LOG_INS = 40  # until each worker has let someone in: that one of two has not after all of them, no one will see
_LOGGED_IN = re.compile(r"console_login worker=(\d)")


@asynccontextmanager
async def serving_with(*arguments: str, env: dict[str, str] | None = None) -> AsyncIterator[HttpProcess]:
    """Each request has a connection of its own, which leads to any of the workers."""
    async with (
        http_process("--workers", str(COUNT), *arguments, env=env) as endpoint,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0, force_close=True)) as http,
    ):
        apart = HttpProcess(endpoint.process, endpoint.url, http)
        apart.log = endpoint.log
        yield apart


@pytest_asyncio.fixture
async def endpoint() -> AsyncIterator[HttpProcess]:
    async with serving_with() as running:
        yield running


def workers_of(endpoint: HttpProcess) -> dict[int, int]:
    """The process of each worker, by its number."""
    found: dict[int, int] = {}
    for pid in children_of(endpoint.process.pid):
        try:
            words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:  # it ended in between
            continue
        numbers = [word.partition(b"=")[2] for word in words if word.startswith(b"EMCEEPEE_WORKER=")]
        found |= {int(number.partition(b":")[0]): pid for number in numbers if is_alive(pid)}
    return found


async def answers(endpoint: HttpProcess) -> bool:
    try:
        async with endpoint.http.get(endpoint.origin + "/readyz") as response:
            return response.status == 200
    except (OSError, aiohttp.ClientError):
        return False


async def timers_of(caller: HttpCaller) -> list[str]:
    """Return the caller's session, at any worker; nothing if that worker does not hold it."""
    try:
        async with caller.post("tools/call", {"name": "list_timers", "arguments": {}}) as response:
            result = (await response.json()).get("result", {}) if response.status == 200 else {}
    except (OSError, aiohttp.ClientError):
        return []
    return [timer["message"] for timer in result.get("structuredContent", {}).get("timers", [])]


# They serve.


async def test_workers_print_one_address_line_and_one_link_opens_the_console_at_each_worker(
    endpoint: HttpProcess,
) -> None:
    assert sorted(workers_of(endpoint)) == list(range(COUNT))
    assert {os.getpgid(pid) for pid in workers_of(endpoint).values()}.isdisjoint({os.getpgid(endpoint.process.pid)})
    seen: set[str] = set()
    for number in range(1, LOG_INS):
        browser, link = Browser(endpoint.http, endpoint.origin), await the_link(endpoint.log, number)
        await browser.log_in(link)
        assert {(await browser.open("/")).status for _ in range(4)} == {200}, "the login holds at each worker"
        assert {(await Browser(endpoint.http, endpoint.origin).open(link)).status for _ in range(2)} == {403}
        seen = set(_LOGGED_IN.findall("".join(endpoint.log)))
        if len(seen) == COUNT:
            break
    assert len(seen) == COUNT
    assert len(links(endpoint.log)) <= number + 1
    assert not [line for line in endpoint.log if "serves MCP" in line]  # but for the first, which was read already


async def test_servers_added_at_one_worker_are_available_at_the_others(endpoint: HttpProcess) -> None:
    modern = endpoint.modern()
    await modern.value("add_server", name="small", **stdio_server())

    async def all_have_it() -> bool:
        listed = [(await modern.value("list_servers"))["servers"] for _ in range(4 * COUNT)]
        return all([server["name"] for server in servers] == ["small"] for servers in listed)

    await eventually(all_have_it, what="each worker has the server")


# They die.


async def test_a_killed_worker_is_restarted_and_its_sessions_continue(endpoint: HttpProcess) -> None:
    """With eight sessions, the killed worker almost certainly held one."""
    callers = []
    for number in range(8):
        caller = await _caller_with_timer(endpoint, f"of {number}")
        callers.append(caller)
    before = workers_of(endpoint)
    os.kill(before[1], signal.SIGKILL)
    await eventually(lambda: answers(endpoint), what="someone answers")
    for number, caller in enumerate(callers):
        await eventually(lambda c=caller, n=number: _has(c, f"of {n}"), what="the session is found")  # type: ignore[misc]  # mypy cannot infer a lambda with defaults
    await eventually(lambda: 1 in workers_of(endpoint), what="there is another worker")
    after = workers_of(endpoint)
    assert (after[0], after[1] != before[1]) == (before[0], True)
    await eventually(lambda: "worker_restarted worker=1" in "".join(endpoint.log), what="it is ready")
    assert f"worker_ended worker=1 code=-{signal.SIGKILL.value} restart_seconds=0.1" in "".join(endpoint.log)


async def _caller_with_timer(endpoint: HttpProcess, message: str) -> HttpCaller:
    """On one connection, so that this needs no other worker than the first."""
    async with aiohttp.ClientSession() as http:
        here = HttpProcess(endpoint.process, endpoint.url, http)
        opened = await here.caller()
        await opened.value("set_timer", duration_ms=600_000, message=message)
    caller = HttpCaller(endpoint, {})
    caller.headers |= opened.headers
    return caller


async def _has(caller: HttpCaller, message: str) -> bool:
    return await timers_of(caller) == [message]


async def test_a_killed_worker_gets_a_new_console_link(endpoint: HttpProcess) -> None:
    first = await the_link(endpoint.log)
    os.kill(workers_of(endpoint)[0], signal.SIGKILL)
    second = await the_link(endpoint.log, 2)
    assert (await Browser(endpoint.http, endpoint.origin).open(first)).status == 403
    await Browser(endpoint.http, endpoint.origin).log_in(second)


async def test_a_worker_that_received_sigterm_is_restarted(endpoint: HttpProcess) -> None:
    before = workers_of(endpoint)[0]
    os.kill(before, signal.SIGTERM)
    await eventually(lambda: workers_of(endpoint).get(0, before) != before, what="there is another")


# They end.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_to_the_parent_stops_all_workers_in_order_and_leaves_no_process(number: signal.Signals) -> None:
    async with serving_with() as endpoint:
        await endpoint.modern().value("add_server", name="small", **stdio_server())
        started = below(endpoint.process.pid)
        assert len(started) > COUNT
        endpoint.process.send_signal(number)
        assert await asyncio.wait_for(endpoint.process.wait(), BOUND) == 0
        assert [pid for pid in started if is_alive(pid)] == []


async def test_a_second_interrupt_ends_the_workers_at_once() -> None:
    async with serving_with() as endpoint:
        caller = await _caller_with_timer(endpoint, "x")
        waiting = {"name": "await_activity", "arguments": {"timeout_ms": 60_000}}
        asking = [asyncio.create_task(_ask(caller, waiting)) for _ in range(4)]
        endpoint.process.send_signal(signal.SIGINT)
        await eventually(lambda: _stops(endpoint), what="they are stopping")
        endpoint.process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(endpoint.process.wait(), BOUND) == 0
        await asyncio.gather(*asking)


async def _ask(caller: HttpCaller, params: dict[str, Any]) -> None:
    try:
        async with caller.post("tools/call", params) as response:
            await response.read()
    except (OSError, aiohttp.ClientError):
        pass


async def _stops(endpoint: HttpProcess) -> bool:
    return not await answers(endpoint)


async def test_a_signal_ends_workers_that_are_still_starting(tmp_path: Path) -> None:
    process = await launch("--workers", "2", state=tmp_path)
    await eventually(lambda: len(children_of(process.pid)) == COUNT, what="the workers are being started")
    started = below(process.pid)
    process.terminate()
    _, said = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode == 0, said
    assert b"Traceback" not in said
    assert [pid for pid in started if is_alive(pid)] == []


async def test_workers_end_with_a_killed_parent(tmp_path: Path) -> None:
    process = await launch("--workers", "2", state=tmp_path)
    await address_of(process, [])
    started = below(process.pid)
    assert len(started) == COUNT
    process.kill()
    await asyncio.wait_for(process.communicate(), BOUND)
    await eventually(lambda: not any(map(is_alive, started)), what="no worker is left")


# They cannot start.


async def refused(tmp_path: Path, *arguments: str) -> str:
    process = await launch("--workers", "2", *arguments, state=tmp_path)
    _, said = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode == 2, said
    return said.decode()


async def test_a_port_in_use_by_other_workers_is_refused_in_one_line(endpoint: HttpProcess, tmp_path: Path) -> None:
    """The system would allow processes of the same user to share the port."""
    port = endpoint.origin.rpartition(":")[2]
    said = await refused(tmp_path, "--port", port)
    assert said.startswith(f"emceepee: cannot listen on 127.0.0.1:{port}: ")
    assert said.count("\n") == 1


async def test_an_unusable_state_file_is_reported_once_for_all_workers(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_text("no database at all, but long enough to be taken for one" * 100)
    said = await refused(tmp_path, "--state", f"sqlite:{file}")
    assert said.startswith(f"emceepee: The state file {file} is damaged, or is not a state file")
    assert said.count("\n") == 1


async def test_the_alias_of_the_serve_command_supports_workers(tmp_path: Path) -> None:
    alias = "import sys; from emceepee.cli.main import main_http; sys.exit(main_http())"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", alias, "--port", "0", "--no-console", "--workers", "2"),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
    )
    assert process.stderr is not None
    lines = [await asyncio.wait_for(process.stderr.readline(), BOUND) for _ in range(2)]
    assert b"state_created" in lines[0]
    assert b"serves MCP at http://127.0.0.1:" in lines[1]
    process.terminate()
    _, rest = await asyncio.wait_for(process.communicate(), BOUND)
    assert (process.returncode, rest) == (0, b"")
