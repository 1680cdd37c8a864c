"""Waiting scripts use no process, continue with the answer, and outlive emceepee. The test controls the clock."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.codemode import engine, script
from emceepee.codemode.script import PARK_SECONDS, Script
from emceepee.codemode.script_calls import PARALLEL_CALLS
from emceepee.sessions.calls import RECORD_SECONDS
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Commit, Sealer, StoredSession
from emceepee.wire.json_types import JsonObject
from support.backends.catalog_backend import text_result
from support.backends.scripted_backend import ScriptedBackend
from support.backends.task_backend import DONE, INTERVAL, TaskBackend
from support.fakes.clock import settle
from support.sessions.asking import elicit, task_id
from support.sessions.installation import Installation
from support.sessions.machine import Machine
from support.sessions.replies import own_part
from support.sessions.request_contexts import call_tool
from support.sessions.scene import Scene, a_scene
from support.store.stored_changes import change_stored_session
from support.waiting import eventually

DESK = SessionKey("local", KeyKind.NAME, "desk")
MOMENT = 0.05  # seconds: more than it takes until changes are saved
ONE_CALL = "x = await mcp.call_tool('one', 'echo', {'n': 1})\n"


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with a_scene(one=ScriptedBackend()) as scene:
        yield scene


def scripts_of(session: Session) -> list[Script]:
    return [call.connection for call in session.calls.in_flight("emceepee") if isinstance(call.connection, Script)]


async def until_kept(session: Session, clock: Any) -> None:
    """It waits, and time passes in which it gets no answer. Where nothing is stored, it waits on."""
    await eventually(lambda: any(script.is_waiting for script in scripts_of(session)), what="the script waits")
    await clock.advance(RECORD_SECONDS)
    scripts, is_stored = scripts_of(session), session.unsaved.is_followed

    def has_snapshot(script: Script) -> bool:
        return script.is_waiting and (script.parked_bytes > 0 or not is_stored)

    await eventually(lambda: all(map(has_snapshot, scripts)), what="it is kept")


async def until_parked(session: Session, clock: Any) -> None:
    """And more time, in which it gets none."""
    await until_kept(session, clock)
    await clock.advance(PARK_SECONDS)

    def has_no_worker() -> bool:
        return all(script.worker_pid is None and script.parked_bytes for script in scripts_of(session))

    await eventually(has_no_worker, what="the script is parked")


async def until_waiting(scene: Scene) -> None:
    await eventually(lambda: any(script.is_waiting for script in scripts_of(scene.session)), what="the script waits")


# In one process.


async def test_a_waiting_script_occupies_no_process_and_continues_with_the_answer(scene: Scene) -> None:
    call = scene.start("codemode_execute", code=f"local = [1, 2]\n{ONE_CALL}print('on')\n(local, x)")
    asked = await scene.backends["one"].next_asked()
    await until_parked(scene.session, scene.clock)
    asked.reply(**text_result("late"))
    value = own_part((await call)["structuredContent"])
    assert (value["result"], value["logs"], value["stats"]["mcpCalls"]) == ([[1, 2], "late"], ["on"], 1)
    assert value["stats"]["durationMs"] == round((RECORD_SECONDS + PARK_SECONDS) * 1000)


async def test_a_script_past_its_timeout_becomes_a_task_that_can_be_collected(scene: Scene) -> None:
    call = scene.start("codemode_execute", code=f"{ONE_CALL}x", timeout=5)
    asked = await scene.backends["one"].next_asked()
    await until_parked(scene.session, scene.clock)
    await scene.clock.advance(5)
    promotion = await call
    name = task_id(promotion)
    assert promotion["structuredContent"]["proxy_task"]["tool"] == "codemode_execute"
    again = scene.start("codemode_execute", task_id=name, timeout=3)
    await scene.clock.advance(3)
    assert task_id(await again) == name, "it still waits"
    again = scene.start("codemode_execute", task_id=name)
    await settle()
    asked.reply(**text_result("late"))
    assert own_part((await again)["structuredContent"])["result"] == "late"
    once_more = await scene.call("get_task_result", task_id=name)
    assert own_part(once_more["structuredContent"])["result"] == "late"
    assert (await scene.error("codemode_execute", task_id="nothing"))["code"] == "ERR_TASK_NOT_FOUND"


async def test_a_failed_script_is_a_completed_task_with_an_error_result(scene: Scene) -> None:
    call = scene.start("codemode_execute", code=f"{ONE_CALL}1 / 0", timeout=1)
    asked = await scene.backends["one"].next_asked()
    await until_parked(scene.session, scene.clock)
    name = task_id(await call)
    asked.reply(content=[])
    result = await scene.call("get_task_result", task_id=name)
    assert result["isError"] is True
    assert own_part(result["structuredContent"])["error"]["line"] == 2


async def test_a_question_of_a_call_promotes_the_script_and_shows_the_question(scene: Scene) -> None:
    backend = scene.backends["one"]
    call = scene.start("codemode_execute", code=f"{ONE_CALL}f'hello {{x}}'")
    asked = await backend.next_asked()
    answer = elicit(backend, origin=asked.origin)
    promotion = await call
    name = task_id(promotion)
    (question,) = promotion["structuredContent"]["pending_on_server"]["elicitations_for_server"]
    assert question["message"] == "Your name?"
    assert "respond_to_elicitation" in promotion["content"][0]["text"]
    await until_parked(scene.session, scene.clock)
    await scene.value(
        "respond_to_elicitation", request_id=question["requestId"], action="accept", content={"name": "Ann"}
    )
    asked.reply(**text_result(str((await answer)["content"]["name"])))
    taken = await scene.call("codemode_execute", task_id=name)
    assert own_part(taken["structuredContent"])["result"] == "hello Ann"


async def test_a_sleeping_script_is_parked(scene: Scene) -> None:
    code = "await mcp.sleep(600)\nawait asyncio.sleep(60)\n'awake'"  # by the clock of the scene
    call = scene.start("codemode_execute", code=code, timeout=1)
    await until_parked(scene.session, scene.clock)
    name = task_id(await call)
    (script,) = scripts_of(scene.session)
    await scene.clock.advance(600)
    await eventually(lambda: script.is_waiting, what="it waits again")
    await scene.clock.advance(60)
    taken = await scene.call("codemode_execute", task_id=name)
    assert own_part(taken["structuredContent"])["result"] == "awake"


async def test_a_sleep_in_a_script_delays_none_of_its_calls(scene: Scene) -> None:
    sleeps = ", ".join(["mcp.sleep(5)"] * PARALLEL_CALLS)
    call = scene.start("codemode_execute", code=f"await asyncio.gather({sleeps}, mcp.call_tool('one', 'echo'))\n'all'")
    asked = await scene.backends["one"].next_asked()
    asked.reply(content=[])
    await until_waiting(scene)
    await scene.clock.advance(5)
    assert own_part((await call)["structuredContent"])["result"] == "all"


async def test_canceling_the_task_of_a_script_cancels_its_calls(scene: Scene) -> None:
    backend = scene.backends["one"]
    call = scene.start("codemode_execute", code=ONE_CALL, timeout=1)
    await backend.next_asked()
    await until_parked(scene.session, scene.clock)
    await scene.value("cancel_task", task_id=task_id(await call))
    await eventually(lambda: bool(backend.cancelled), what="the call is given up")
    await eventually(lambda: len(scene.session.calls) == 0, what="nothing is left")


@pytest.mark.parametrize("limit", ["PARKED_BYTES_IN_ALL", "PARKED_BYTES_PER_PRINCIPAL"])
async def test_the_number_of_parked_scripts_is_bounded_overall_and_per_principal(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, limit, 1000)
    async with a_scene(one=ScriptedBackend()) as scene:
        call = scene.start("codemode_execute", code=ONE_CALL, timeout=300)
        await scene.backends["one"].next_asked()
        await until_kept(scene.session, scene.clock)
        await scene.clock.advance(PARK_SECONDS)
        assert (await call)["structuredContent"]["error"]["name"] == "ParkingFull"


# When emceepee is killed or stopped.


async def until_loaded(place: Installation) -> None:
    """Before time passes: all that passes until then counts as computed."""
    session = await place.directory.find_or_open(DESK)
    await eventually(lambda: all(script.is_waiting for script in scripts_of(session)), what="the script goes on")


def start_script(session: Session, code: str) -> "asyncio.Task[JsonObject]":
    arguments = {"code": code, "timeout": 1}
    return asyncio.create_task(call_tool({"name": "codemode_execute", "arguments": arguments}, session))


async def run_another_script(session: Session) -> None:
    """From its first line to its end."""
    assert own_part((await start_script(session, "1 + 1"))["structuredContent"])["result"] == 2


class Play:
    """One backend, and the processes that know it."""

    def __init__(self, backend: ScriptedBackend | None = None) -> None:
        self.machine, self.backend = Machine(), backend or ScriptedBackend()

    async def begin(self, place: Installation, code: str, asked: int = 1) -> list[Any]:
        """A script in its session that is parked: what it asked of the server."""
        session = await place.directory.find_or_open(DESK)
        self.call = start_script(session, code)
        found = [await self.backend.next_asked() for _ in range(asked)]
        await until_parked(session, place.clock)
        self.task_id = task_id(await self.call)
        await place.clock.advance(MOMENT)
        return found

    def sent(self) -> list[int]:
        """The calls that the server ever got."""
        return [params["arguments"]["n"] for method, params in self.backend.seen if method == "tools/call"]

    async def value(self, place: Installation) -> JsonObject:
        session = await place.directory.find_or_open(DESK)
        arguments = {"task_id": self.task_id, "timeout": 300}
        result = await call_tool({"name": "codemode_execute", "arguments": arguments}, session)
        return own_part(result["structuredContent"])


CAREFUL = """
first = await mcp.call_tool('one', 'echo', {'n': 1})
try:
    second = await mcp.call_tool('one', 'echo', {'n': 2})
except RuntimeError as error:
    second = str(error)
third = await mcp.call_tool('one', 'echo', {'n': 3})
print('done')
(first, second, third)
"""


@pytest.mark.parametrize("dies", [True, False], ids=["killed", "stopped"])
async def test_a_parked_script_continues_in_the_next_process_and_repeats_no_call(dies: bool) -> None:
    play = Play()
    async with play.machine.process(dies=dies, backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        play.call = start_script(session, CAREFUL)
        (await play.backend.next_asked()).reply(**text_result("one"))
        await play.backend.next_asked()
        await until_parked(session, place.clock)
        play.task_id = task_id(await play.call)
        await place.clock.advance(MOMENT)
    async with play.machine.process(backend=play.backend) as place:
        taking = asyncio.create_task(play.value(place))
        third = await play.backend.next_asked()
        assert third.params["arguments"] == {"n": 3}
        third.reply(**text_result("three"))
        value = await taking
    first, second, third_result = value["result"]
    assert (first, third_result, value["logs"], value["stats"]["mcpCalls"]) == ("one", "three", ["done"], 3)
    assert "not known whether it ran" in second
    assert play.sent() == [1, 2, 3], "each once"


CATCHING = """
try:
    answer = await mcp.call_tool('one', 'echo', {'n': 1})
except RuntimeError as error:
    answer = 'may have run' if 'not known whether it ran' in str(error) else str(error)
"""


async def test_a_script_at_a_question_is_stored_before_the_reply_with_the_question_is_sent() -> None:
    """No time passes: the periodic write would be a tenth of a second later."""
    play = Play()
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        play.call = start_script(session, f"kept = 42\n{CATCHING}(kept, answer)")
        asked = await play.backend.next_asked()
        asking = elicit(play.backend, origin=asked.origin)
        play.task_id = task_id(await play.call)
    await asyncio.wait({asking})
    async with play.machine.process(backend=play.backend) as place:
        assert (await play.value(place))["result"] == [42, "may have run"]
    assert play.sent() == [1]


async def test_a_script_with_many_short_waits_is_stored_before_the_reply_that_names_its_task_is_sent() -> None:
    play = Play()
    short = RECORD_SECONDS / 2
    code = f"for _ in range(100):\n    await mcp.sleep({short})\n{CATCHING}answer"
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        play.call = start_script(session, code)
        while not play.call.done():
            await eventually(
                lambda: play.call.done() or any(script.is_waiting for script in scripts_of(session)), what="it waits"
            )
            await place.clock.advance(short)
        play.task_id = task_id(await play.call)
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        taking, asked = asyncio.create_task(play.value(place)), asyncio.create_task(play.backend.next_asked())
        while not asked.done():
            await eventually(
                lambda: asked.done() or any(script.is_waiting for script in scripts_of(session)), what="it waits"
            )
            await place.clock.advance(short)
        (await asked).reply(**text_result("at last"))
        value = await taking
    assert value["result"] == "at last"


async def test_a_script_that_answers_questions_is_not_stored_and_its_task_reports_the_loss() -> None:
    play = Play()
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        play.call = start_script(session, f"name = 'respond_to_elicitation'\n{ONE_CALL}x")
        await play.backend.next_asked()
        await eventually(lambda: scripts_of(session)[0].is_waiting, what="it waits")
        await place.clock.advance(1)
        play.task_id = task_id(await play.call)
        await place.clock.advance(MOMENT)
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        arguments = {"task_id": play.task_id}
        result = await call_tool({"name": "codemode_execute", "arguments": arguments}, session)
    assert result["structuredContent"]["error"]["details"]["reason"] == "restart"


async def test_an_answer_before_the_kill_survives_while_another_call_waits() -> None:
    play = Play()
    code = """
async def ask(n):
    try:
        return await mcp.call_tool('one', 'echo', {'n': n})
    except RuntimeError as error:
        return 'unknown'
await asyncio.gather(ask(1), ask(2))
"""
    async with play.machine.process(backend=play.backend) as place:
        one, _ = await play.begin(place, code, asked=2)
        one.reply(**text_result("answered"))
        await place.clock.advance(MOMENT)
        await settle()
        await place.clock.advance(MOMENT)
    async with play.machine.process(backend=play.backend) as place:
        assert (await play.value(place))["result"] == ["answered", "unknown"]


async def test_a_call_of_a_script_is_stored_before_it_is_sent() -> None:
    play = Play()
    code = """
await mcp.sleep(5)
try:
    x = await mcp.call_tool('one', 'echo', {'n': 1})
except RuntimeError as error:
    x = 'may have run'
x
"""
    async with play.machine.process(backend=play.backend) as place:
        await play.begin(place, code, asked=0)
        await place.clock.advance(5)
        await play.backend.next_asked()  # and in this very moment the process is killed
    async with play.machine.process(backend=play.backend) as place:
        assert (await play.value(place))["result"] == "may have run"
    assert [method for method, _ in play.backend.seen].count("tools/call") == 1


TWO_CALLS = """
mcp.log('begun')
one = await mcp.call_tool('one', 'echo', {'n': 1})
mcp.log(one)
try:
    two = await mcp.call_tool('one', 'echo', {'n': 2})
except RuntimeError as error:
    two = 'may have run'
two
"""


async def test_a_script_does_not_continue_before_the_key_for_its_record_has_arrived(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play, asked_for, given, sealer = Play(), asyncio.Event(), asyncio.Event(), MemoryStore.sealer

    async def late(store: MemoryStore) -> Sealer | None:
        asked_for.set()
        await given.wait()
        return await sealer(store)

    with monkeypatch.context() as patched:
        patched.setattr(MemoryStore, "sealer", late)
        async with play.machine.process(backend=play.backend) as place:
            session = await place.directory.find_or_open(DESK)
            play.call = start_script(session, TWO_CALLS)
            first = await play.backend.next_asked()
            await until_kept(session, place.clock)
            first.reply(**text_result("answered"))
            async with asyncio.timeout(5):
                await asked_for.wait()
            await run_another_script(session)  # by then the first one could have continued
            given.set()
            await play.backend.next_asked()
            play.task_id = session.calls.in_flight("emceepee")[0].call_id or ""
            await place.clock.advance(MOMENT)
            play.machine.store.die()
    play.call.cancel()
    async with play.machine.process(backend=play.backend) as place:
        taking = asyncio.create_task(play.value(place))
        await eventually(lambda: taking.done() or len(play.sent()) > 2, what="it ends")
        assert play.sent() == [1, 2], "each once"
        value = await taking
    assert (value["result"], value["logs"], value["stats"]["mcpCalls"]) == ("may have run", ["begun", "answered"], 2)


async def test_output_of_a_script_after_its_last_snapshot_is_not_duplicated() -> None:
    play = Play()
    code = """
async def ask(n):
    try:
        await mcp.call_tool('one', 'echo', {'n': n})
    except RuntimeError as error:
        pass
    print(n)
await asyncio.gather(ask(1), ask(2))
"""
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        play.call = start_script(session, code)
        one, _ = [await play.backend.next_asked() for _ in range(2)]
        await until_kept(session, place.clock)
        (script,) = scripts_of(session)
        one.reply(**text_result("answered"))
        await settle()
        await eventually(lambda: script.is_waiting, what="it waits for the second answer")
        play.task_id = session.calls.in_flight("emceepee")[0].call_id or ""
        await place.clock.advance(MOMENT)
        play.machine.store.die()
    play.call.cancel()
    async with play.machine.process(backend=play.backend) as place:
        value = await play.value(place)
    assert (sorted(value["logs"]), value["stats"]["mcpCalls"]) == (["1", "2"], 2)


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("is_parked", [False, True], ids=["kept", "parked"])
@pytest.mark.parametrize("how", ["killed", "stopped", "stopped with all calls"])
async def test_a_backend_task_continues_with_its_script(modern: bool, is_parked: bool, how: str) -> None:
    backend = TaskBackend(modern=modern)
    play = Play(backend)
    async with play.machine.process(dies=how == "killed", backend=backend) as place:
        session = await place.directory.find_or_open(DESK)
        code = "x = await mcp.call_tool('one', 'required')\nf'it said {x}'"
        play.call = start_script(session, code)
        if not modern:
            await backend.begin_asked()
        else:
            await eventually(lambda: backend.counted("tools/call") == 1, what="it is called")
        await (until_parked if is_parked else until_kept)(session, place.clock)
        await place.clock.advance(0 if is_parked else 1 - RECORD_SECONDS)
        play.task_id = task_id(await play.call)
        await place.clock.advance(MOMENT)
        (script,) = scripts_of(session)
        assert (script.worker_pid is None) is is_parked
        if how == "stopped with all calls":
            place.directory.stop_calls()
            await settle()
    assert backend.task.status == "working", "nobody cancelled it"
    async with play.machine.process(backend=backend) as place:
        backend.task.complete()
        await place.clock.advance(INTERVAL + MOMENT)
        if not modern:
            (await backend.next_asked("tasks/result")).reply(**DONE)
        value = await play.value(place)
    assert (value["success"], value.get("result")) == (True, f"it said {DONE['content'][0]['text']}")
    assert backend.counted("tools/call") == 1


async def test_an_answer_that_arrives_during_the_shutdown_is_not_lost() -> None:
    play = Play()
    async with play.machine.process(dies=False, backend=play.backend) as place:
        (asked,) = await play.begin(place, f"{ONE_CALL}x")
        session = await place.directory.find_or_open(DESK)
        asked.reply(**text_result("just in time"))
        async with asyncio.timeout(5):
            while session.calls.in_flight("one"):
                await settle(1)  # and not a turn more
        place.directory.stop_calls()
        await settle()
    async with play.machine.process(backend=play.backend) as place:
        assert (await play.value(place))["result"] == "just in time"


async def test_a_sleeping_script_wakes_in_the_next_process_on_time() -> None:
    play = Play()
    async with play.machine.process(backend=play.backend) as place:
        await play.begin(place, "import math\nawait mcp.sleep(100)\nmath.floor(2.5)", asked=0)
    async with play.machine.process(backend=play.backend) as place:
        taking = asyncio.create_task(play.value(place))
        await until_loaded(place)
        await place.clock.advance(40)
        assert not taking.done()
        await place.clock.advance(60)
        assert (await taking)["result"] == 2


async def test_typed_functions_still_work_in_the_next_process() -> None:
    play = Play()
    code = "from servers import one\nawait mcp.sleep(5)\nasync def last():\n    from servers import one as again\n    "
    code += "return await again.echo()\n(await one.slow(), await last())"
    async with play.machine.process(backend=play.backend) as place:
        await play.begin(place, code, asked=0)
    async with play.machine.process(backend=play.backend) as place:
        taking = asyncio.create_task(play.value(place))
        await until_loaded(place)
        await place.clock.advance(5)
        for words in ("slow", "echo"):
            asked = await play.backend.next_asked()
            assert asked.params["name"] == words
            asked.reply(**text_result(words))
        assert (await taking)["result"] == ["slow", "echo"]


async def test_a_snapshot_of_another_sandbox_version_fails_its_task_clearly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    play = Play()
    async with play.machine.process(backend=play.backend) as place:
        await play.begin(place, ONE_CALL)
    monkeypatch.setattr(engine, "sandbox_version", lambda: "9.9")
    async with play.machine.process(backend=play.backend) as place:
        error = (await play.value(place))["error"]
    assert error["name"] == "SnapshotLost"
    assert "and this is 9.9" in error["message"]


async def test_a_snapshot_without_a_valid_seal_is_not_loaded() -> None:
    play = Play()
    async with play.machine.process(backend=play.backend) as place:
        await play.begin(place, ONE_CALL)

    def change_script(stored: StoredSession) -> Commit:
        (key,) = [key for key in stored.records if key.kind == RecordKind.SCRIPT]
        sealed = stored.records[key]
        assert b"echo" not in sealed
        return Commit(head=stored.head, lease=stored.lease, puts={key: sealed[:-1] + bytes([sealed[-1] ^ 1])})

    await change_stored_session(play.machine.store, DESK, change_script)
    async with play.machine.process(backend=play.backend) as place:
        session = await place.directory.find_or_open(DESK)
        result = await call_tool({"name": "get_task_result", "arguments": {"task_id": play.task_id}}, session)
    assert result["isError"] is True
    assert "restarted" in result["content"][0]["text"]


async def test_a_script_cannot_add_servers_after_a_restart() -> None:
    play = Play()
    code = "await mcp.sleep(5)\nawait mcp.tool('add_server', {'name': 'two', 'url': 'http://two.test/mcp'})"
    async with play.machine.process(backend=play.backend) as place:
        await play.begin(place, code, asked=0)
    async with play.machine.process(backend=play.backend) as place:
        taking = asyncio.create_task(play.value(place))
        await until_loaded(place)
        await place.clock.advance(5)
        error = (await taking)["error"]
    assert (error["name"], "cannot add servers" in error["message"]) == ("PermissionError", True)
