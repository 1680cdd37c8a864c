"""The calls of a script that have begun: each runs one emceepee tool and stores its answer until the script takes it.

If a call becomes a task, it waits for that task. After a restart, a call that may already have run is never repeated:
if it has a task, that task is followed; otherwise the script learns that the outcome is unknown.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.clock import within
from emceepee.codemode.answers import exception_for, is_exception, notes_on, raised, returned, value_of
from emceepee.codemode.kept_script import PendingCall
from emceepee.codemode.script_log import ScriptLog
from emceepee.codemode.tool_access import ToolAccess, ToolAnswer
from emceepee.codemode.values import Conversions, Size, excess, spend_json
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.futures import resolve
from emceepee.lifecycle import CLOSE_TASKS_SECONDS, TaskOwner
from emceepee.sessions.call import Call
from emceepee.sessions.session import Session
from emceepee.state.call_step import CallStage
from emceepee.state.question import Question
from emceepee.state.task import Task
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject

log = EventLog("codemode")
PARALLEL_CALLS = 20  # per script; other calls wait for a free slot. Sleeps do not count
BYTES_PER_TEXT_BYTE, BYTES_PER_VALUE = 2, 128  # estimated size in a script's memory, to bound the answers
_MAY_HAVE_RUN = (
    "emceepee was restarted before the answer came. It is not known whether it ran: check before you call it again."
)


class ScriptCalls:
    """The calls of one script that have begun. They have the rights of `caller`. Each answer triggers `on_answer`."""

    def __init__(
        self,
        session: Session,
        tools: ToolAccess,
        conversions: Conversions,
        log: ScriptLog,
        *,
        caller: Any,
        on_answer: Callable[[], None],
    ) -> None:
        self.script: Call | None = None  # the call that runs the script itself
        self._session, self._tools, self._caller, self._on_answer = session, tools, caller, on_answer
        self._conversions, self._log = conversions, log
        self._calls: dict[int, PendingCall] = {}  # not yet answered in the sandbox
        self._answered: asyncio.Future[None] | None = None
        self._room = asyncio.Semaphore(PARALLEL_CALLS)
        self._work = TaskOwner("script")

    def __len__(self) -> int:
        return len(self._calls)

    def calls(self) -> list[PendingCall]:
        return list(self._calls.values())

    def unanswered(self) -> list[PendingCall]:
        return [call for call in self._calls.values() if call.answer is None]

    def begin(self, calls: Iterable[PendingCall]) -> None:
        for call in calls:
            self._calls[call.number] = call
            self._work.spawn(self._serve(call), name=call.function)

    def restore(self, calls: Iterable[PendingCall]) -> None:
        """Resume calls that another process began: follow their tasks, or report that their outcome is unknown."""
        for call in calls:
            self._calls[call.number] = call
            if call.answer is None:
                self._work.spawn(self._serve(call, is_restored=True), name=call.function)

    async def close(self) -> None:
        """Stop waiting for all calls and cancel their tasks, unless another process continues the script."""
        given_up = [] if self._is_left else [call.call_id for call in self.unanswered()]
        await self._work.close(within=CLOSE_TASKS_SECONDS)
        for call_id in given_up:
            if self._session.tasks.find(call_id) is not None:
                self._session.calls.cancel_task(call_id)

    def may_have_asked(self, question: Question) -> bool:
        """Return whether one of the calls may wait for this answer. A login belongs to a server, not to one call."""
        if question.call_id is None:
            return any(call.arguments.get("server") == question.server for call in self.unanswered())
        return any(call.call_id == question.call_id for call in self.unanswered())

    @property
    def _is_left(self) -> bool:
        """Return whether another process will continue the script and its calls."""
        return self.script is not None and self.script.state.stage is CallStage.LEFT

    # Answers.

    @property
    def is_waited_for(self) -> bool:
        return self._answered is not None and not self._answered.done()

    def has_answer(self, numbers: Iterable[int]) -> bool:
        """Return whether any of these calls has an answer."""
        return any(number in self._calls and self._calls[number].answer is not None for number in numbers)

    def take_answers(self, numbers: Iterable[int]) -> dict[int, Any]:
        """Remove and return the answers of these calls that have arrived, for the script."""
        return {number: self._calls.pop(number).answer for number in numbers if self.has_answer((number,))}

    async def wait_for_answer(self, numbers: Iterable[int], seconds: float | None) -> None:
        """Wait until one of these calls has an answer or the time has passed."""
        self._answered = asyncio.get_running_loop().create_future()
        if self.has_answer(numbers):
            return
        with suppress(TimeoutError):
            await (self._answered if seconds is None else within(self._session.clock, seconds, self._answered))

    def interrupt_wait(self) -> None:
        """Make `wait_for_answer` return as if it timed out."""
        if self._answered is not None:
            resolve(self._answered, None)

    # One call.

    async def _serve(self, call: PendingCall, *, is_restored: bool = False) -> None:
        answer = await self._answer(call, is_restored=is_restored)
        if self._is_left and is_exception(answer):
            return  # the shutdown caused it: the process that continues the script also follows this call
        call.answer = answer
        self._on_answer()
        self.interrupt_wait()

    async def _answer(self, call: PendingCall, *, is_restored: bool) -> JsonObject:
        try:
            if call.wakes_at is not None:
                await self._sleep_until(datetime.fromisoformat(call.wakes_at))
                return returned(None)
            async with self._room:
                answer = await self._ask(call, is_restored=is_restored)
            await self._measure(call, answer)
            for note in notes_on(call, answer):
                self._log.write_line(note)
            return returned(value_of(call, answer))
        except EmceepeeError as error:
            return await exception_for(call, error, self._session, self._tools)
        except Exception as error:
            log.error("script_call_failed", function=call.function, error=f"{type(error).__name__}: {error}")
            return raised("RuntimeError", f"{call.function} failed inside emceepee; its log says more.")

    async def _ask(self, call: PendingCall, *, is_restored: bool) -> ToolAnswer:
        """Raises: EmceepeeError."""
        tools, session = self._tools, self._session
        if is_restored and not tools.is_repeatable(call.function):
            if session.tasks.find(call.call_id) is None:
                raise EmceepeeError(_MAY_HAVE_RUN)
            return await self._task_answer(call.call_id)
        answer = await tools.call(
            call.function,
            call.arguments,
            session,
            caller=self._caller,
            parent=None if self.script is None else self.script.span,
            call_id=call.call_id,
        )
        if answer.task_id is None:
            return answer
        if self.script is not None:
            session.calls.promote_for_question([self.script])  # it now waits for a task, and becomes one
        return await self._task_answer(answer.task_id)

    async def _measure(self, call: PendingCall, answer: ToolAnswer) -> None:
        """Raises: EmceepeeError if the answer and the pending answers exceed what the script can hold."""
        most = self._session.limits.script_memory_bytes
        budget = Budget(max_bytes=most // BYTES_PER_TEXT_BYTE, max_nodes=most // BYTES_PER_VALUE)
        try:
            for other in self._calls.values():
                budget.spend(*other.answer_size)
            before = Size.of(budget)
            await self._conversions.run(lambda budget: spend_json(answer.value, budget), budget)
        except OverBudget as error:
            raise EmceepeeError(
                f"The answer takes {excess(error)}, with other answers that wait for the script. That is more than a "
                "script can hold: ask for less of it.",
                code=ErrorCode.LIMIT_EXCEEDED,
            ) from None
        call.answer_size = Size.of(budget).less(before)

    async def _sleep_until(self, moment: datetime) -> None:
        left = (moment - self._session.clock.now()).total_seconds()
        if left > 0:
            await self._session.clock.sleep(left)

    async def _task_answer(self, task_id: str) -> ToolAnswer:
        """Raises: EmceepeeError."""
        task: Task = await self._session.tasks.wait_until_finished(task_id, None)
        if task.error is not None:
            raise EmceepeeError(str(task.error["message"]))
        if task.result is None:
            raise EmceepeeError(f"its task was {task.status}.")
        return ToolAnswer(value=task.result, is_raw=task.method == "tools/call")
