"""Backend tasks when emceepee is killed, stopped, or replaced. The test controls the clock."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from emceepee.backends.http.resumption import Resumption
from emceepee.backends.link import ServerFacts
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Commit, Sealer, StoredSession
from support.backends.task_backend import DONE, INTERVAL, TaskBackend
from support.fakes.clock import settle
from support.sessions.event_delivery import take
from support.sessions.installation import Installation
from support.sessions.machine import Machine
from support.sessions.request_contexts import call_tool
from support.store.stored_changes import change_stored_session

DESK = SessionKey("local", KeyKind.NAME, "desk")
SECRET_SESSION = "session-at-the-backend"
MOMENT = 0.05  # seconds: more than it takes until changes are saved
ANSWER = {"name": "Ann"}


async def value(session: Session, tool: str, /, **arguments: Any) -> Any:
    result = await call_tool({"name": tool, "arguments": arguments}, session)
    assert not result.get("isError"), result
    return result["structuredContent"]


@dataclass
class Play:
    """One backend, and the processes that know it."""

    machine: Machine
    backend: TaskBackend

    async def begin(self, place: Installation, *, timeout_ms: int = 0) -> "asyncio.Task[Any]":
        session = await place.directory.find_or_open(DESK)
        arguments = {"server": "one", "tool": "required", "timeout_ms": timeout_ms}
        call = asyncio.create_task(value(session, "execute_tool", **arguments))
        if not self.backend.facts.is_modern:
            await self.backend.begin_asked()
        await place.clock.advance(MOMENT)
        return call

    async def begin_task(self, place: Installation) -> str:
        return str((await (await self.begin(place)))["proxy_task"]["task_id"])

    async def deliver(self, place: Installation) -> None:
        self.backend.task.complete()
        await place.clock.advance(INTERVAL + MOMENT)
        if not self.backend.facts.is_modern:
            (await self.backend.next_asked("tasks/result")).reply(**DONE)
        await place.clock.advance(MOMENT)

    def ask(self) -> None:
        if self.backend.facts.is_modern:
            self.backend.task.ask("first")
        else:
            self.backend.request(7)

    @property
    def answers(self) -> list[Any]:
        if self.backend.facts.is_modern:
            return list(self.backend.task.answers.values())
        return [answer["result"] for answer in self.backend.answered]


@pytest.fixture(params=[False, True], ids=["2025-11-25", "2026-07-28"])
async def play(request: pytest.FixtureRequest) -> Play:
    backend = TaskBackend(modern=request.param)
    if not request.param:
        facts = ServerFacts(protocol_version="2025-11-25", capabilities=backend.facts.capabilities)
        backend.resumption = Resumption(SECRET_SESSION, facts)
    return Play(Machine(), backend)


def events(session: Session) -> list[str]:
    return [str(event.type) for event in take(session.activity).events]


def of_tasks(kinds: list[str]) -> list[str]:
    return [kind for kind in kinds if kind.startswith("task_")]


@pytest.mark.parametrize("dies", [True, False], ids=["killed", "stopped"])
async def test_a_backend_task_continues_in_the_next_process_and_its_result_is_reported_once(
    play: Play, dies: bool
) -> None:
    async with play.machine.process(dies=dies, backend=play.backend) as place:
        name = await play.begin_task(place)
    assert play.backend.task.status == "working", "nobody cancelled it"
    assert play.backend.link.leaves_session
    async with play.machine.process(backend=play.backend) as place:
        await play.deliver(place)  # nobody has asked for the session yet
        session = await place.directory.find_or_open(DESK)
        assert of_tasks(events(session))[-1:] == ["task_completed"]
        assert (await value(session, "get_task", task_id=name))["task"]["hasResult"] is True
        await place.clock.advance(MOMENT)
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        assert of_tasks(events(session)) == ["task_created", "task_completed"], "no second ones"
        result = await call_tool({"name": "get_task_result", "arguments": {"task_id": name}}, session)
        assert result["content"][0] == DONE["content"][0]
    assert play.backend.counted("tools/call") == 1


async def test_a_session_of_a_2025_11_25_backend_is_resumed_without_a_handshake(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        await play.begin_task(place)
    async with play.machine.process(backend=play.backend) as place:
        await place.clock.advance(MOMENT)
    expected = None if play.backend.facts.is_modern else play.backend.resumption
    assert play.backend.dials[-1].resumption == expected


async def test_a_call_that_waits_during_a_shutdown_becomes_a_task(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        waiting = await play.begin(place, timeout_ms=60_000)
        place.directory.stop_calls()
        reply = await waiting
        name = reply["proxy_task"]["task_id"]
    async with play.machine.process(backend=play.backend) as place:
        await play.deliver(place)
        session = await place.directory.find_or_open(DESK)
        assert (await value(session, "get_task", task_id=name))["task"]["status"] == "completed"


async def test_a_call_that_waits_during_a_kill_is_reported_as_a_task(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        waiting = await play.begin(place, timeout_ms=60_000)
        play.machine.store.die()
    waiting.cancel()
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        assert of_tasks(events(session)) == ["task_created"]
        await play.deliver(place)
        assert of_tasks(events(session)) == ["task_completed"]


async def test_a_wait_for_a_result_during_a_shutdown_ends_with_the_advice_to_ask_again(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        name = await play.begin_task(place)
        session = await place.directory.find_or_open(DESK)
        call = {"name": "get_task_result", "arguments": {"task_id": name}}
        waiting = asyncio.create_task(call_tool(call, session))
        await settle()
        place.directory.stop_calls()
        error = (await waiting)["structuredContent"]["error"]
        assert error["code"] == "TOOL_ERR_TIMEOUT"
        assert "call get_task_result again" in error["message"]


@pytest.mark.parametrize("how", ["killed", "stopped", "stopped with all calls"])
async def test_an_open_question_is_asked_again_after_a_restart_and_its_answer_reaches_the_task(
    play: Play, how: str
) -> None:
    async with play.machine.process(dies=how == "killed", backend=play.backend) as place:
        await play.begin_task(place)
        play.ask()
        await place.clock.advance(INTERVAL + MOMENT)
        session = await place.directory.find_or_open(DESK)
        (before,) = session.questions.open()
        if how == "stopped with all calls":
            place.directory.stop_calls()
            await settle()
    assert play.answers == []
    assert play.backend.task.status != "cancelled"
    async with play.machine.process(backend=play.backend) as place:
        await place.clock.advance(INTERVAL)
        session = await place.directory.find_or_open(DESK)
        (question,) = session.questions.open()
        assert question.request_id != before.request_id
        session.questions.answer_elicitation(question.request_id, "accept", ANSWER)
        await place.clock.advance(INTERVAL)
        assert play.answers == [{"action": "accept", "content": ANSWER}]


async def test_the_next_process_can_cancel_a_task_of_the_previous_one(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        name = await play.begin_task(place)
    async with play.machine.process(backend=play.backend) as place:
        await place.clock.advance(MOMENT)
        session = await place.directory.find_or_open(DESK)
        await value(session, "cancel_task", task_id=name)
        await settle()
        assert play.backend.task.status == "cancelled"


async def test_a_task_expires_even_after_a_period_without_polls(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        name = await play.begin_task(place)
    await play.machine.clock.advance(3600)
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        assert (await value(session, "get_task", task_id=name))["task"]["status"] == "expired"


async def test_a_task_that_its_server_forgot_has_failed_with_the_reason(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        name = await play.begin_task(place)
    play.backend.forget()
    async with play.machine.process(backend=play.backend) as place:
        await place.clock.advance(1)
        session = await place.directory.find_or_open(DESK)
        task = (await value(session, "get_task", task_id=name))["task"]
        assert (task["status"], "no longer recognizes" in task["statusMessage"]) == ("failed", True)


async def test_stored_task_data_reaches_no_other_server_of_the_same_name(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        name = await play.begin_task(place)
    elsewhere = BackendSpec(name="one", target=HttpTarget(url="http://elsewhere.test/mcp"))
    seen = len(play.backend.seen)
    async with play.machine.process(backend=play.backend, specs={"one": elsewhere}) as place:
        await place.clock.advance(1)
        session = await place.directory.find_or_open(DESK)
        task = (await value(session, "get_task", task_id=name))["task"]
        assert (task["status"], "emceepee was restarted" in task["statusMessage"]) == ("failed", True)
    assert len(play.backend.seen) == seen


@contextmanager
def without_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    async def none(self: MemoryStore) -> Sealer | None:
        return None

    with monkeypatch.context() as patched:
        patched.setattr(MemoryStore, "sealer", none)
        yield


async def test_without_an_encryption_key_nothing_is_stored_and_the_task_fails_like_any_other(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    with without_key(monkeypatch):
        async with play.machine.process(backend=play.backend) as place:
            name = await play.begin_task(place)
        async with play.machine.process(backend=play.backend) as place:
            session = await place.directory.find_or_open(DESK)
            task = (await value(session, "get_task", task_id=name))["task"]
            assert (task["status"], "emceepee was restarted" in task["statusMessage"]) == ("failed", True)


async def test_task_ids_of_the_backend_are_stored_only_encrypted(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        await play.begin_task(place)
        stored = await play.machine.store.take(DESK)
    assert stored is not None
    assert "backend_task" in {key.kind for key in stored.records}
    for data in stored.records.values():
        assert play.backend.task.task_id.encode() not in data
        assert SECRET_SESSION.encode() not in data


async def test_the_polling_data_of_a_finished_task_is_deleted(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        await play.begin_task(place)
        await play.deliver(place)
        stored = await play.machine.store.take(DESK)
    assert stored is not None
    assert "backend_task" not in {key.kind for key in stored.records}
    assert stored.head.due_at is None


async def test_a_process_that_takes_the_session_over_continues_the_task_and_the_first_one_cancels_nothing(
    play: Play,
) -> None:
    async with play.machine.process(dies=False, backend=play.backend) as first:
        name = await play.begin_task(first)
        session = await first.directory.find_or_open(DESK)
        play.machine.store.die()  # as one that is paused for too long
        async with play.machine.process(backend=play.backend) as second:
            session.lose()
            await settle()
            assert play.backend.task.status == "working"
            await play.deliver(second)
            taken = await second.directory.find_or_open(DESK)
            assert (await value(taken, "get_task", task_id=name))["task"]["status"] == "completed"


async def test_a_task_is_not_continued_in_a_session_that_was_given_to_another_principal(play: Play) -> None:
    async with play.machine.process(backend=play.backend) as place:
        await play.begin_task(place)
    eve = SessionKey("eve", KeyKind.NAME, "desk")

    def give_to_eve(stored: StoredSession) -> Commit:
        head = replace(stored.head, principal="eve", keys=frozenset({eve}))
        return Commit(head=head, lease=stored.lease, puts={})

    await change_stored_session(play.machine.store, DESK, give_to_eve)
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(eve)
        assert of_tasks(events(session))[-1:] == ["task_failed"]
