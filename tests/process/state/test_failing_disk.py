"""The disk of a running server fails: its sessions continue, it reports the failure, and later saves everything."""

import asyncio
import resource
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from emceepee.wire.json_types import JsonObject
from support.callers.http_process import HttpCaller
from support.callers.restartable_process import RestartableProcess, restartable_process
from support.server_programs import hostile
from support.sessions.replies import notice_in
from support.waiting import eventually

NOT_SAVED, SAVED = {"status": "ok", "state": "not saved"}, {"status": "ok"}


@pytest_asyncio.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[RestartableProcess]:
    async with restartable_process(tmp_path, expected="state_not_saved") as running:
        yield running


@contextmanager
def full_disk(endpoint: RestartableProcess) -> Iterator[None]:
    """Nothing can be written to any file."""
    pid, (before, hard) = endpoint.process.pid, resource.prlimit(endpoint.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    yield
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (before, hard))


@contextmanager
def directory_away(endpoint: RestartableProcess) -> Iterator[None]:
    """Moved, and put back."""
    place = endpoint.database.parent
    place.rename(place.with_name("elsewhere"))
    yield
    place.with_name("elsewhere").rename(place)


async def readiness(endpoint: RestartableProcess) -> dict[str, str]:
    async with endpoint.http.get(endpoint.origin + "/readyz") as response:
        assert response.status == 200
        return dict(await response.json())


async def until_it_says(endpoint: RestartableProcess, caller: HttpCaller, words: dict[str, str]) -> list[str]:
    """Timers that were set during the failure, each with an answer."""
    timers: list[str] = []

    async def is_said() -> bool:
        timers.append((await caller.value("set_timer", duration_ms=3_600_000, message="meanwhile"))["timerId"])
        return await readiness(endpoint) == words

    await eventually(is_said, what=f"it says {words}", within=40)
    return timers


@pytest.mark.parametrize("fault", [full_disk, directory_away])
async def test_sessions_continue_on_a_failing_disk_and_are_written_later(
    endpoint: RestartableProcess, fault: Callable[[RestartableProcess], AbstractContextManager[None]]
) -> None:
    caller, modern = await endpoint.caller(), endpoint.modern(emceepee_session="mine")
    assert await readiness(endpoint) == SAVED
    with fault(endpoint):
        timers = await until_it_says(endpoint, caller, NOT_SAVED)
        kept = (await modern.value("set_timer", duration_ms=3_600_000, message="meanwhile"))["timerId"]
        opened = await endpoint.caller()
        await asyncio.gather(*(caller.value("list_timers") for _ in range(20)))
    timers += await until_it_says(endpoint, caller, SAVED)
    await endpoint.kill()
    assert len([line for line in endpoint.log if "state_not_saved" in line]) == 1
    await endpoint.start()
    assert {timer["timerId"] for timer in (await caller.value("list_timers"))["timers"]} == set(timers)
    assert [timer["timerId"] for timer in (await modern.value("list_timers"))["timers"]] == [kept]
    assert (await opened.value("list_timers"))["timers"] == []


async def test_a_reply_with_a_promise_that_cannot_be_saved_contains_a_notice(endpoint: RestartableProcess) -> None:
    """There is one notice per reply with a durable promise, none on other replies, and none after the recovery."""
    caller, modern = await endpoint.caller(), endpoint.modern(emceepee_session="mine")
    program = {"command": sys.executable, "args": ["-S", hostile.__file__]}
    await caller.value("add_server", name="one", **program)
    with full_disk(endpoint):
        promises: dict[str, JsonObject] = {
            "add_server": {"name": "two", **program},
            "set_timer": {"duration_ms": 3_600_000, "message": "x"},
            "set_log_level": {"server": "one", "level": "info"},
            "execute_tool": {"server": "one", "tool": "hang", "timeout_ms": 0},
            "remove_server": {"name": "two"},
        }
        for tool, arguments in promises.items():
            assert notices_of_unsaved(await caller.call(tool, **arguments)) == 1, tool
        assert notices_of_unsaved(await modern.call("open_session")) == 1
        others: dict[str, JsonObject] = {
            "execute_tool": {"server": "one", "tool": "echo", "args": {"text": "x"}},
            "list_servers": {},
            "list_timers": {},
            "await_activity": {"timeout_ms": 100},
        }
        for tool, arguments in others.items():
            assert notices_of_unsaved(await caller.call(tool, **arguments)) == 0, tool
    await until_it_says(endpoint, caller, SAVED)
    reply = await caller.call("set_timer", duration_ms=3_600_000, message="x")
    assert notices_of_unsaved(reply) == 0


def notices_of_unsaved(result: JsonObject) -> int:
    """How many blocks say that something is not saved; its structured content says so as well."""
    found = [notice for block in result["content"] if "state_not_saved" in (notice := notice_in(block["text"]) or {})]
    assert ("state_not_saved" in result.get("structuredContent", {})) is bool(found)
    return len(found)


async def test_a_deleted_state_directory_is_reported_and_calls_continue(endpoint: RestartableProcess) -> None:
    caller = await endpoint.caller()
    shutil.rmtree(endpoint.database.parent)
    timers = await until_it_says(endpoint, caller, NOT_SAVED)
    assert len((await caller.value("list_timers"))["timers"]) == len(timers)
    (line,) = [line for line in endpoint.log if "state_not_saved" in line]
    await endpoint.stop()
    assert str(endpoint.database) in line
    assert "no longer exists" in line
    assert not endpoint.database.exists()
