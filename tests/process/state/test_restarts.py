"""A real process ends, by a kill or in order, and the next one goes on with what it left.

Everything is begun before, each in a session of its own; then there is one restart, and each test looks at one thing.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.backends.counting_http import CountingBackend
from support.callers.http_process import HttpCaller, SentEvent
from support.callers.restartable_process import RestartableProcess, restartable_process
from support.server_programs.stdio_entries import stdio_server
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
Session = tuple[HttpCaller, dict[str, str]]  # who asks, and the argument that names the session


@dataclass
class Restarted:
    """The started calls, by the name of their caller."""

    endpoint: RestartableProcess
    backend: CountingBackend
    was_killed: bool
    callers: dict[str, HttpCaller] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    identities: list[Session] = field(default_factory=list)
    ended: list[Session] = field(default_factory=list)
    streams: dict[str, list[SentEvent]] = field(default_factory=dict)
    backend_ids: set[str] = field(default_factory=set)
    levels_set: int = 0

    @property
    def words(self) -> str:
        """Why a call that ran has failed."""
        return "emceepee was restarted" if self.was_killed else "emceepee is stopping"

    async def begin(self) -> None:
        await self._add_servers()
        await asyncio.gather(
            *(self._identities(), self._tasks(), self._timers(), self._question(), self._settings()),
            *(self._ended(), self._streams()),
        )

    async def restart(self) -> None:
        self.backend_ids = self._seen_ids()
        self.levels_set = self.backend.seen["logging/setLevel"]
        self.backend.headers.clear()
        self.backend.subscribed.clear()
        await self.endpoint.restart("kill" if self.was_killed else "stop")

    def _seen_ids(self) -> set[str]:
        return {headers["emceepee-session-id"] for headers in self.backend.headers}

    async def _add_servers(self) -> None:
        caller = await self.endpoint.caller()
        await caller.value("add_server", name="one", url=self.backend.url)
        await caller.value("add_server", name="zebra", url=self.backend.url, headers={"x-token": "hush-header"})
        await caller.value("add_server", name="gone", url=self.backend.url)
        program = {"command": sys.executable, "args": stdio_server()["args"], "env": {"TOKEN": "hush-env"}}
        await caller.value("add_server", name="ape", **program)
        await caller.value("remove_server", name="gone")
        self.callers["servers"] = caller

    async def _identities(self) -> None:
        default = self.endpoint.modern(client="someone")
        handle = {"session": (await default.value("open_session"))["session"]}
        self.identities = [
            (await self.endpoint.caller("2025-06-18"), {}),
            (await self.endpoint.caller(emceepee_session="shared"), {}),
            (self.endpoint.modern(emceepee_session="mine"), {}),
            (default, {}),
            (default, handle),
        ]
        for number, (caller, session) in enumerate(self.identities):
            await caller.value("set_timer", duration_ms=3_600_000, message=str(number), **session)

    async def _tasks(self) -> None:
        caller = self.callers["tasks"] = await self.endpoint.caller()
        for name in ("finished", "working"):
            held: dict[str, Any] = {"server": "one", "tool": "hold", "args": {"id": name}, "timeout_ms": 0}
            self.ids[name] = (await caller.value("execute_tool", **held))["proxy_task"]["task_id"]
        self.backend.let_go("finished")
        await hear(caller, "task_completed")

    async def _timers(self) -> None:
        caller = self.callers["timers"] = self.endpoint.modern(emceepee_session="timers")
        timer = await caller.value("set_timer", duration_ms=1_000, message="late")
        self.ids["late"] = timer["timerId"]

    async def _question(self) -> None:
        caller = self.callers["question"] = self.endpoint.modern(emceepee_session="question")
        await caller.value("execute_tool", server="one", tool="ask", args={"id": "asked"})
        ((question,),) = (await caller.value("get_elicitations")).values()
        self.ids["question"] = question["requestId"]

    async def _settings(self) -> None:
        caller = self.callers["settings"] = self.endpoint.modern(emceepee_session="settings")
        await caller.value("subscribe_resource", server="one", uri="note://1")
        await caller.value("set_log_level", server="one", level="warning")

    async def _ended(self) -> None:
        caller, modern = await self.endpoint.caller(), self.endpoint.modern(client="ended")
        handle = {"session": (await modern.value("open_session"))["session"]}
        self.ended = [(caller, {}), (modern, handle), (self.endpoint.modern(emceepee_session="ended"), {})]
        for one, session in self.ended:
            await one.value("set_timer", duration_ms=3_600_000, message="x", **session)
        assert await caller.end() == 200
        await modern.value("close_session", **handle)
        await modern.value("close_session", session="ended")

    async def _streams(self) -> None:
        caller = self.callers["streams"] = await self.endpoint.caller()
        held: dict[str, Any] = {"server": "one", "tool": "hold"}
        async with caller.stream("execute_tool", args={"id": "answered"}, **held) as stream:
            first = await stream.some(2)
            self.backend.let_go("answered")
            self.streams["answered"] = first + await stream.rest()
        async with caller.stream("execute_tool", key="cut", args={"id": "cut"}, **held) as stream:
            self.streams["cut"] = await stream.some(2)
            stream.cut()


async def hear(caller: HttpCaller, kind: str) -> dict[str, Any]:
    """The data of the first event of this type, as soon as it is there."""
    async with asyncio.timeout(30):
        while True:
            activity = await caller.value("await_activity", timeout_ms=5_000)
            for event in (event for group in activity["events"] for event in group["events"]):
                if event["type"] == kind:
                    return dict(event["data"])


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["kill", "stop"])
async def restarted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Restarted]:
    backend = CountingBackend()
    backend.tools += ["hold"]
    await backend.start()
    async with restartable_process(tmp_path_factory.mktemp("state")) as endpoint:
        scene = Restarted(endpoint, backend, request.param == "kill")
        await scene.begin()
        await scene.restart()
        yield scene
    await backend.stop()
    assert max(backend.ran.values()) == 1, "a call ran twice"


async def test_session_id_handle_name_and_default_session_remain_valid_after_a_restart_without_a_handshake(
    restarted: Restarted,
) -> None:
    for number, (caller, session) in enumerate(restarted.identities):
        (timer,) = (await caller.value("list_timers", **session))["timers"]
        assert timer["message"] == str(number)
    by_name = restarted.endpoint.modern(emceepee_session="shared")  # the session that a handshake joined
    assert (await by_name.value("list_timers"))["timers"][0]["message"] == "1"


async def test_finished_results_are_available_after_a_restart(restarted: Restarted) -> None:
    result = await restarted.callers["tasks"].call("get_task_result", task_id=restarted.ids["finished"])
    assert result["content"][0]["text"] == "finished"


async def test_a_working_task_has_failed_with_the_reason_after_a_restart(restarted: Restarted) -> None:
    caller, task_id = restarted.callers["tasks"], restarted.ids["working"]
    failed = (await caller.value("get_task", task_id=task_id))["task"]
    assert failed["status"] == "failed"
    error = await caller.error("get_task_result", task_id=task_id)
    assert (error["code"], error["details"]["mayHaveRun"]) == ("TOOL_ERR_SERVER_DISCONNECTED", True)
    assert restarted.words in error["message"]
    kept = await caller.value("await_activity", last_event_id="all")
    ends = [event for group in kept["events"] for event in group["events"] if event["type"] == "task_failed"]
    assert [(event["data"]["taskId"], restarted.words in event["data"]["error"]) for event in ends] == [(task_id, True)]


async def test_an_overdue_timer_fires_once_after_a_restart(restarted: Restarted) -> None:
    caller, timer_id = restarted.callers["timers"], restarted.ids["late"]
    assert (await hear(caller, "timer_expired"))["timerId"] == timer_id
    assert (await caller.value("get_timer", timer_id=timer_id))["fireCount"] == 1
    kept = await caller.value("await_activity", last_event_id="all")
    assert [event["type"] for group in kept["events"] for event in group["events"]] == ["timer_expired"]


async def test_an_open_question_has_expired_after_a_restart_because_its_server_was_lost(restarted: Restarted) -> None:
    caller, question = restarted.callers["question"], restarted.ids["question"]
    expired = await hear(caller, "elicitation_expired")
    assert (expired["requestId"], expired["reason"]) == (question, "disconnected")
    assert (await caller.value("get_elicitations"))["requests"] == []
    gone = await caller.error("respond_to_elicitation", request_id=question, action="decline")
    assert gone["code"] == "ERR_REQUEST_NOT_FOUND"


async def test_subscriptions_and_log_levels_are_requested_again_after_a_restart(restarted: Restarted) -> None:
    backend = restarted.backend
    await restarted.callers["settings"].call("execute_tool", server="one", tool="echo", args={"id": "settings"})
    await eventually(lambda: backend.subscribed == ["note://1"], what="the subscription is restored")
    await eventually(lambda: backend.seen["logging/setLevel"] == restarted.levels_set + 1, what="the level is restored")


async def test_added_servers_are_restored_in_order_with_their_secrets_and_a_removed_one_is_not(
    restarted: Restarted,
) -> None:
    caller, backend = restarted.callers["servers"], restarted.backend
    servers = (await caller.value("list_servers"))["servers"]
    assert [server["name"] for server in servers] == ["one", "zebra", "ape"]
    await caller.call("execute_tool", server="zebra", tool="echo", args={"id": "zebra"})
    assert "hush-header" in {headers.get("x-token") for headers in backend.headers}
    assert (await caller.error("execute_tool", server="gone", tool="echo"))["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


async def test_the_state_file_contains_no_secret_in_plain_text(restarted: Restarted) -> None:
    assert b"hush" not in _bytes_of_files(restarted.endpoint.database.parent)


def _bytes_of_files(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.glob("state.db*") if file.is_file())


async def test_ended_sessions_and_removed_servers_stay_deleted(restarted: Restarted) -> None:
    (caller, _), (modern, handle), (named, _) = restarted.ended
    async with caller.post("tools/list") as response:
        assert response.status == 404
    assert (await modern.error("list_timers", **handle))["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
    assert (await named.value("list_timers"))["timers"] == []


async def test_an_answer_from_before_a_restart_is_replayed_by_its_last_event_id(restarted: Restarted) -> None:
    before = restarted.streams["answered"]
    async with restarted.callers["streams"].get(before[0].event_id) as resumed:
        replayed = await resumed.rest()
    assert replayed == before[1:]
    assert replayed[-1].message is not None
    assert replayed[-1].message["result"]["content"][0]["text"] == "answered"


async def test_the_stream_of_a_request_that_a_restart_interrupted_ends_with_an_error_that_gives_the_reason(
    restarted: Restarted,
) -> None:
    async with restarted.callers["streams"].get(restarted.streams["cut"][-1].event_id) as resumed:
        last = (await resumed.rest())[-1].message
    assert last is not None
    assert last["id"] == "cut"
    error = last["error"] if restarted.was_killed else last["result"]["structuredContent"]["error"]
    assert restarted.words in error["message"]


async def test_servers_receive_the_same_caller_id_as_before_the_restart(restarted: Restarted) -> None:
    """This test runs last because it checks all requests to the servers of the others."""
    await restarted.callers["question"].call("execute_tool", server="one", tool="echo", args={"id": "identity"})
    seen = {headers["emceepee-session-id"] for headers in restarted.backend.headers}
    assert seen
    assert seen <= restarted.backend_ids
