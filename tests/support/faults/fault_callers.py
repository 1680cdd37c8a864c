"""Callers whose processes are killed, stopped, and paused."""

import asyncio
import random
from typing import Any

from support.callers.http_process import EventReader
from support.callers.restartable_process import RestartableProcess
from support.faults.bounded_requests import MAY_HAVE_RUN, Unanswered, last_message, refuse, within_bound
from support.faults.findings import Rule
from support.faults.session_caller import Json, OtherSession, SessionCaller
from support.faults.timeline import Span, moment
from support.faults.world import World
from support.sessions.replies import text_of

CLEAR = {"TOOL_ERR_SERVER_DISCONNECTED", "TOOL_ERR_EXECUTION_FAILED"}
QUIET = [{"type": "timeout"}]
ANSWER = {"result", "error"}


class UnknownStream(Exception):
    """It cannot be taken up again, says the process."""


class FaultCaller(SessionCaller):
    """A caller that chooses its actions at random."""

    def __init__(self, world: World, kind: str, name: str, chance: random.Random) -> None:
        super().__init__(world, kind, name, chance)
        self._held: list[tuple[str, str]] = []
        self.others: list[OtherSession] = []

    async def open(self) -> None:
        await super().open()
        started, asked = await self.call("set_timer", duration_ms=1000, message="again and again", interval=True)
        self.ledger.intervals[started["structuredContent"]["timerId"]] = asked

    async def run(self) -> None:
        actions = [self._run, self._note, self._promote, self.let_go, self._time, self._listen]
        actions += [self._read_result, self._cut, self._answer_a_question, self._open_another]
        weights = [5, 5, 4, 4, 4, 3, 2, 2, 2, 1]
        while not self.world.is_over:
            (action,) = self.chance.choices(actions, weights)
            try:
                await action()
            except Unanswered:
                pass  # it is counted; the caller knows that it was not answered, and does the next thing
            except AssertionError as error:
                self.world.findings.add(Rule.RIGHT_ANSWERS, f"{self.name} at {moment():.3f}: {error}")
            self.world.progress()
            await asyncio.sleep(self.chance.uniform(0, 2 * self.world.pause))  # as callers think between two calls

    # Calls.

    async def _execute(self, tool: str, server: str, **arguments: Any) -> tuple[str, Json, Span]:
        call_id = self.world.new_id()
        try:
            result, asked = await self.call(
                "execute_tool", server=server, tool=tool, args={"id": call_id, "text": call_id}, **arguments
            )
        except Unanswered:
            if server in self.world.backends:
                self.world.backends[server].let_go(call_id)  # nobody will, who does not know of it
            raise
        return call_id, result, asked

    def is_well(self, result: Json) -> bool:
        if result.get("isError"):
            error = result["structuredContent"]["error"]
            assert error["code"] in CLEAR, error
            self.world.counts["calls that failed with a clear error"] += 1
        return not result.get("isError")

    async def _run(self) -> None:
        call_id, result, _ = await self._execute("echo", self.chance.choice(("old", "new", "local")))
        if self.is_well(result):
            assert call_id in text_of(result), result
            self.world.counts["calls"] += 1

    async def _note(self) -> None:
        call_id, result, asked = await self._execute("notify", "old")
        if self.is_well(result):
            self.ledger.notes[f"note://{call_id}"] = asked

    async def _promote(self) -> None:
        server = self.chance.choice(("old", "new"))
        call_id, result, asked = await self._execute("hold", server, timeout_ms=0)
        if self.is_well(result):
            self._promise(result, asked, call_id)
            self._held.append((server, call_id))

    def _promise(self, result: Json, asked: Span, text: str) -> None:
        """A task, and what its result will say."""
        task_id = result["structuredContent"]["proxy_task"]["task_id"]
        self.ledger.tasks[task_id], self.ledger.texts[task_id] = asked, text

    async def let_go(self) -> None:
        while self._held:
            server, call_id = self._held.pop()
            self.world.backends[server].let_go(call_id)

    async def _time(self) -> None:
        result, asked = await self.call(
            "set_timer", duration_ms=self.chance.randint(1, 1500), message=self.world.new_id()
        )
        assert not result.get("isError"), result
        self.ledger.timers[result["structuredContent"]["timerId"]] = asked

    async def _listen(self) -> None:
        patience = self.chance.randint(100, 300)
        await self.call("await_activity", timeout_ms=patience, own=patience / 1000)

    async def _read_result(self) -> None:
        if completed := self.ledger.completed:
            await self.check_result(self.chance.choice(completed))

    async def check_result(self, task_id: str) -> None:
        result, _ = await self.call("get_task_result", task_id=task_id)
        text = self.ledger.texts.get(task_id)  # unknown, if the reply that named the task was lost
        if result.get("isError"):
            (told,) = (each for each in self.ledger.of_type("task_completed") if each["data"]["taskId"] == task_id)
            assert self.ledger.may_be_lost(told["id"]), result
            return
        assert text in (None, text_of(result)), (text, result)
        self.world.counts["results read"] += 1

    async def _open_another(self) -> None:
        self.others.append(await self.open_another())

    # Questions.

    async def _answer_a_question(self) -> None:
        """At another process than the one where it was heard of."""
        server, process = self.chance.choice(("old", "new")), await self.world.choose(self.chance)
        _, result, asked = await self._execute("ask", server, at=process)
        if self.is_well(result):
            self._promise(result, asked, "accept")
            questions = result["structuredContent"]["pending_on_server"]["elicitations_for_server"]
            other = await self.world.choose(self.chance, other_than=process)
            for question in questions:
                await self.answer(question["requestId"], Span(asked.began, moment()), at=other)

    async def answer(self, request_id: str, known: Span, **where: Any) -> None:
        """It may be gone, if anything happened to its process since it was known."""
        given: Json = {"action": "accept", "content": {"sure": True}}
        result, asked = await self.call("respond_to_elicitation", request_id=request_id, **given, **where)
        if result.get("isError"):
            error = result["structuredContent"]["error"]
            assert error["code"] == "ERR_REQUEST_NOT_FOUND", error
            since = self.world.timeline.before(Span(known.began, asked.ended), self.world.felt)
            assert self.world.timeline.meeting(since), f"a question is gone without a fault: {error}"
            self.world.counts["questions that went with a process"] += 1
        else:
            self.world.counts["questions answered"] += 1

    # A stream that is cut, and taken up again if its era can.

    async def _cut(self) -> None:
        call_id, began = self.world.new_id(), moment()
        process = await self.world.choose(self.chance)
        try:
            beginning, what = self._begin_and_cut(process, call_id), f"{self.name}: a stream of {call_id}"
            last_id, answer = await within_bound(self.world, process, beginning, own=0, what=what)
            self.world.note(self.world.number_of(process), Span(began, moment()), what, f"{last_id} {answer}")
        finally:
            self.world.backends["old"].let_go(call_id)
            cut = len(self.ledger.cuts)
            self.ledger.cuts.append(Span(began, moment()))
        if answer is not None:
            self._hear_at_once(answer, Span(began, moment()), process)
            return
        self.world.counts["streams cut"] += 1
        if last_id is None or self.is_modern:
            return
        while moment() < began + self.world.recovery:
            process = await self.world.choose(self.chance)
            try:
                resuming, what = self._resume(process, last_id), f"{self.name}: the rest of {call_id} after {last_id}"
                message = await within_bound(self.world, process, resuming, own=0, what=what, is_resumed=True)
            except UnknownStream as error:
                if not self.world.timeline.explains_loss(Span(began, moment())):
                    self.world.findings.add(Rule.RIGHT_ANSWERS, f"{self.name}: {error}")
                self.world.counts["streams that went with a process while the store was away"] += 1
                return
            except Unanswered:
                self.world.progress()
                await asyncio.sleep(self.world.pause)  # a caller that is asked to retry waits first
                continue
            asked = self.ledger.cuts[cut] = Span(began, moment())
            self._hear_end(call_id, message, asked, process)
            return
        raise AssertionError(f"a stream that was cut at {began:.3f} cannot be taken up again")

    async def _begin_and_cut(self, process: RestartableProcess, call_id: str) -> tuple[str | None, Json | None]:
        """Where to take it up again, or the answer if it was there before anything could be cut."""
        last_id, began = None, moment()
        params = {"name": "execute_tool", "_meta": {"progressToken": "t"}}
        wanted = {"server": "old", "tool": "hold", "args": {"id": call_id}, **self.session}
        async with self.at(process).post("tools/call", params | {"arguments": wanted}) as response:
            await refuse(self.world, process, response, began)
            if response.content_type != "text/event-stream":
                return None, dict(await response.json())
            stream = EventReader(response)
            while (event := await stream.next()) is not None:
                last_id = event.event_id or last_id
                if event.message is not None and ANSWER & event.message.keys():
                    return None, event.message
                if event.message is not None:
                    break
            stream.cut()
        return last_id, None

    async def _resume(self, process: RestartableProcess, last_id: str) -> Json:
        began, headers = moment(), self.caller.headers | {"last-event-id": last_id}
        async with process.http.get(process.url, headers=headers) as response:
            await refuse(self.world, process, response, began)
            if response.status == 400:
                raise UnknownStream(await response.text())
            assert response.status == 200, (response.status, await response.text())
            return await last_message(EventReader(response))

    def _hear_at_once(self, message: Json, asked: Span, process: RestartableProcess) -> None:
        """Record the events of an answer that arrived before anything could cut it."""
        self.world.counts["answers that came before the cut"] += 1
        if "error" in message:
            assert MAY_HAVE_RUN.search(message["error"]["message"]), message
        else:
            self.ledger.hear(message["result"], asked, self.world.teller(self.world.number_of(process)))

    def _hear_end(self, call_id: str, message: Json, asked: Span, process: RestartableProcess) -> None:
        if "error" in message:
            assert "was restarted during this request" in message["error"]["message"], message
            self.world.counts["streams resumed, to hear of the restart"] += 1
            return
        result = message["result"]
        self.ledger.hear(result, asked, self.world.teller(self.world.number_of(process)))
        if self.is_well(result) and "structuredContent" not in result:
            assert text_of(result) == call_id, result
            self.world.counts["streams resumed to the result"] += 1
