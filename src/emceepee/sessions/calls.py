"""Requests to backends. They belong to the session: whoever asked only waits, and a slow one becomes a task."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from emceepee.backends.connection import Connection
from emceepee.clock import within
from emceepee.errors import BackendDisconnected, EmceepeeError, ErrorCode, TimedOut, caught
from emceepee.json_types import JsonObject
from emceepee.lifecycle import CLOSE_LINK_SECONDS, TaskOwner
from emceepee.sessions.buffers import cut, measured
from emceepee.sessions.context import SessionContext
from emceepee.state.call import CALL, CallStage
from emceepee.state.events import EventType
from emceepee.state.question import Question
from emceepee.state.task import Task, TaskStatus
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.spans import Span

log = EventLog("calls")
PROGRESS_BYTES = 4 << 10
OnProgress = Callable[[JsonObject], None]
_SETTLED_EVENT = {
    TaskStatus.COMPLETED: EventType.TASK_COMPLETED,
    TaskStatus.FAILED: EventType.TASK_FAILED,
    TaskStatus.CANCELLED: EventType.TASK_CANCELLED,
    TaskStatus.EXPIRED: EventType.TASK_EXPIRED,
}


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Call:
    """One request in the air.

    `turn` is when the one who asked goes on: the outcome is there, or the call has become a task. `settled` is there
    only for tasks, and is when nothing more will come.
    """

    connection: Connection
    method: str
    params: JsonObject
    tool: str
    arguments: JsonObject
    ttl: timedelta
    promotes_on_question: bool = True
    on_progress: OnProgress | None = None
    span: Span | None = None
    progress: JsonObject | None = None
    call_id: str | None = None
    stage: CallStage = CallStage.IN_FLIGHT
    outcome: JsonObject | EmceepeeError | None = None
    is_done: bool = False
    settled: "asyncio.Future[None] | None" = None
    turn: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    runner: "asyncio.Task[None] | None" = None

    def __repr__(self) -> str:
        return f"<Call {self.server} {self.tool} {self.stage}>"

    @property
    def is_task(self) -> bool:
        return self.stage is CallStage.PROMOTED

    @property
    def server(self) -> str:
        return self.connection.spec.name

    def result(self) -> JsonObject:
        """The backend's raw result. Raises: EmceepeeError."""
        if isinstance(self.outcome, EmceepeeError):
            raise self.outcome
        if self.outcome is None:
            raise EmceepeeError("The call was given up before it had a result.")
        return self.outcome

    def enter(self, stage: CallStage) -> None:
        """Raises: ForbiddenMove."""
        CALL.check(self.stage, stage)
        self.stage = stage

    def go_on(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)


class Ask(Protocol):
    """Puts one call to its backend, rounds of questions included."""

    def __call__(self, call: Call) -> Awaitable[JsonObject]: ...


class Calls:
    """The calls and tasks of one session. Every call settles exactly once, whatever happens at the same time."""

    def __init__(self, ask: Ask, parts: SessionContext, *, ended: Callable[[Call], None]) -> None:
        """`ended` hears of every call that waits for nothing more."""
        self._ended = ended
        self._ask, self._activity, self._wake_by, self._changed = ask, parts.activity, parts.wake_by, parts.changed
        self._clock, self._ids, self._limits, self._results = parts.clock, parts.ids, parts.limits, parts.results
        self._runners = TaskOwner("calls")
        self._in_flight: dict[Call, None] = {}  # ordered, and quick to leave
        self._tasks: dict[str, Task] = {}
        self._calls_of_tasks: dict[str, Call] = {}

    def __len__(self) -> int:
        return len(self._in_flight)

    async def close(self) -> None:
        self._results.leave(self)
        await self._runners.close(within=CLOSE_LINK_SECONDS)

    # Calling.

    def start(self, call: Call) -> None:
        """Send it. Raises: EmceepeeError if too much is at work already."""
        if len(self._in_flight) >= self._limits.tasks_per_session:
            raise EmceepeeError(
                f"{len(self._in_flight)} calls and tasks are at work already, which is this session's limit. "
                "Wait for one with await_activity, or end one with cancel_task.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
        self._in_flight[call] = None
        call.runner = self._runners.spawn(self._run(call), name=call.method)

    async def wait(self, call: Call, patience: float) -> Task | None:
        """Until the outcome is there (None), or the call has become a task. Cancelling the wait cancels the call."""
        if not call.is_done and not call.is_task:
            deadline = self._clock.call_later(patience, lambda: self.promote(call, why="tool_execution_timeout"))
            try:
                await call.turn
            except asyncio.CancelledError:
                self.cancel(call)
                raise
            finally:
                deadline.cancel()
        return self._tasks.get(call.call_id or "") if call.is_task else None

    def cancel(self, call: Call) -> None:
        """Give a call up that is no task; the backend is told."""
        if call.stage is CallStage.IN_FLIGHT:
            call.enter(CallStage.CANCELLED)
            self._leave(call)

    def give_up(self, call: Call) -> None:
        """Cancel it, whether it has become a task or not."""
        if call.is_task and call.call_id is not None:
            self.cancel_task(call.call_id)
        else:
            self.cancel(call)

    def in_flight(self, server: str) -> list[Call]:
        return [call for call in self._in_flight if call.server == server]

    def identify(self, call: Call) -> str:
        """The call's id; if it becomes a task, this is the task's."""
        if call.call_id is None:
            call.call_id = self._ids.new()
        return call.call_id

    def asking(self, server: str, origin: Call | None) -> list[Call]:
        """The calls that a question of this server may be about: the one it came from, if that is known."""
        return [origin] if origin is not None else self.in_flight(server)

    def question_asked(self, server: str, origin: Call | None) -> None:
        """A model that waits cannot answer: the call that asked, or every one that may have, becomes a task."""
        for call in self.asking(server, origin):
            if call.promotes_on_question:
                self.promote(call)

    def progressed(self, call: Call, params: JsonObject) -> None:
        told = call.progress = _progress(params)
        if call.is_task and call.call_id is not None and (task := self._tasks.get(call.call_id)):
            self._tasks[call.call_id] = task.progressed(told, self._clock.now())
            self._changed()
        if call.span is not None:
            call.span.progressed(told)
        if call.on_progress is not None and not call.is_task:
            call.on_progress(told)

    def server_lost(self, server: str, error: EmceepeeError) -> None:
        """Every call to it fails at once, with the reason."""
        for call in self.in_flight(server):
            self._settle(call, error)

    async def _run(self, call: Call) -> None:
        began = self._clock.monotonic()
        if is_debugging := log.is_debugging():
            log.debug("tool_execution_start", server=call.server, tool=call.tool, hasArgs=bool(call.arguments))
        try:
            outcome: JsonObject | EmceepeeError = await self._ask(call)
        except EmceepeeError as error:
            outcome = caught(error)
        except asyncio.CancelledError:
            self.cancel(call)
            raise
        except Exception:
            # A defect of ours, which the owner of the runner logs: whoever waits must not wait for ever.
            self._settle(call, EmceepeeError(f"{call.method} failed inside emceepee; its log says more."))
            raise
        if is_debugging:
            took = round((self._clock.monotonic() - began) * 1000)
            log.debug("tool_execution_complete", server=call.server, tool=call.tool, durationMs=took)
        self._settle(call, outcome)

    def _settle(self, call: Call, outcome: JsonObject | EmceepeeError) -> None:
        """The one place where a call gets its outcome; whoever comes second changes nothing."""
        if call.is_done:
            return
        call.outcome = outcome
        if call.stage is CallStage.IN_FLIGHT:
            call.enter(CallStage.FAILED if isinstance(outcome, EmceepeeError) else CallStage.RETURNED)
        else:
            self._settle_task(self._tasks[self.identify(call)], outcome)
        self._leave(call)

    def _leave(self, call: Call) -> None:
        call.is_done = True
        self._in_flight.pop(call, None)
        call.go_on()
        if call.settled is not None and not call.settled.done():
            call.settled.set_result(None)
        if call.runner is not None and not call.runner.done() and call.runner is not asyncio.current_task():
            call.runner.cancel()
        self._ended(call)

    # Tasks.

    def task(self, task_id: str) -> Task:
        """Raises: EmceepeeError."""
        task = self._tasks.get(task_id)
        if task is None:
            raise EmceepeeError(
                f'There is no task "{task_id[:60]}" (any more). list_tasks with include_completed shows all; '
                f"finished ones are kept {self._limits.task_retention_seconds / 60:g} minutes.",
                code=ErrorCode.TASK_NOT_FOUND,
            )
        return task

    def tasks(self) -> list[Task]:
        return list(self._tasks.values())

    def working(self, server: str) -> list[Task]:
        return [task for task in self._tasks.values() if task.server == server and not task.is_settled]

    def task_of(self, question: Question) -> str | None:
        """The task whose call asked, if it is known and has become one."""
        return question.call_id if question.call_id in self._tasks else None

    async def settled(self, task_id: str, timeout: float | None) -> Task:
        """The task once it is settled. Waits for the call itself, so nothing is polled.

        Raises:
            TimedOut: it still works; the task goes on.
        """
        task, call = self.task(task_id), self._calls_of_tasks.get(task_id)
        if call is not None and call.settled is not None and not task.is_settled:
            left = (task.expires_at - self._clock.now()).total_seconds()
            seconds = left + 1 if timeout is None else timeout  # a settled task by then: it expires first
            try:
                await within(self._clock, seconds, call.settled)
            except TimeoutError:
                raise TimedOut(
                    f'Task "{task_id}" is still working after {seconds:g} s, and goes on. Call get_task_result or '
                    "await_activity again.",
                    details={"taskId": task_id},
                ) from None
        return self.task(task_id)

    def cancel_task(self, task_id: str) -> Task:
        """The task as it is now; the backend is told, if it was still working."""
        task = self.task(task_id)
        if not task.is_settled:
            self._end(task.cancelled(self._clock.now()))
        return self._tasks[task_id]

    def tick(self, now: datetime) -> datetime | None:
        """Apply what time has brought; the next deadline, if there is one."""
        for task in list(self._tasks.values()):
            later = task.tick(now)
            if later is None:
                del self._tasks[task.task_id]
                self._calls_of_tasks.pop(task.task_id, None)
                self._results.release(self, task.task_id)
                self._changed()
            elif later is not task:
                self._end(later)
        return min((task.next_deadline for task in self._tasks.values()), default=None)

    def stop(self) -> None:
        """The process is stopping: every call and task fails now. A task would be a promise that nobody keeps."""
        for call in list(self._in_flight):
            self._settle(call, _stopping(call.server))

    def keep(self, call: Call) -> None:
        """The answer found nobody to read it: it is kept as a finished task."""
        if call.is_task or call.outcome is None or self.identify(call) in self._tasks:
            return
        task = self._new_task(call)
        self._calls_of_tasks[task.task_id] = call
        self._settle_task(task, call.outcome)

    def promote(self, call: Call, *, why: str = "tool_execution_promoted") -> None:
        """The one who waits gets a task instead; the call itself goes on."""
        if call.is_task or call.is_done:
            return
        call.enter(CallStage.PROMOTED)
        call.settled = asyncio.get_running_loop().create_future()
        task = self._new_task(call)
        self._calls_of_tasks[task.task_id] = call
        log.info(why, server=call.server, tool=call.tool, taskId=task.task_id)
        call.go_on()

    def _new_task(self, call: Call) -> Task:
        now = self._clock.now()
        task = self._tasks[self.identify(call)] = Task(
            task_id=self.identify(call),
            server=call.server,
            tool=call.tool,
            method=call.method,
            arguments=call.arguments,
            created_at=now,
            updated_at=now,
            ttl=call.ttl,
            retention=timedelta(seconds=self._limits.task_retention_seconds),
            progress=call.progress,
        )
        self._wake_by(task.next_deadline)
        if call.span is not None:
            call.span.became_task(task.task_id)
        ttl = round(task.ttl.total_seconds() * 1000)
        self._activity.emit(EventType.TASK_CREATED, call.server, taskId=task.task_id, toolName=call.tool, ttl=ttl)
        return task

    def _settle_task(self, task: Task, outcome: JsonObject | EmceepeeError) -> None:
        now = self._clock.now()
        if isinstance(outcome, EmceepeeError):
            self._put(task.failed(outcome.body(), now))
        else:
            self._put(task.completed(outcome, now))

    def _end(self, task: Task) -> None:
        """A task that ends without its call's outcome takes the call with it."""
        self._put(task)
        self._leave(self._calls_of_tasks[task.task_id])

    def _put(self, task: Task) -> None:
        self._tasks[task.task_id] = task
        self._wake_by(task.next_deadline)
        told: dict[str, object] = {"taskId": task.task_id, "toolName": task.tool}
        if task.status is TaskStatus.FAILED:
            told["error"] = task.message
            log.warning("task_failed", taskId=task.task_id, server=task.server, tool=task.tool, error=task.message)
        elif task.status is TaskStatus.COMPLETED:
            told["isError"] = bool((task.result or {}).get("isError"))
            log.info("task_completed", taskId=task.task_id, server=task.server, tool=task.tool)
        elif task.status is TaskStatus.EXPIRED:
            told["ttl"] = round(task.ttl.total_seconds() * 1000)
        if (call := self._calls_of_tasks.get(task.task_id)) is not None and call.span is not None:
            _show(task, call.span)
        self._activity.emit(_SETTLED_EVENT[task.status], task.server, **told)
        self._results.keep(self, task)

    def let_go(self, task_id: str) -> None:
        """Of a finished task, to make room."""
        log.warning("task_result_let_go", taskId=task_id, server=self._tasks[task_id].server)
        self._tasks[task_id] = self._tasks[task_id].lightened()
        self._calls_of_tasks.pop(task_id, None)
        self._changed()


def _progress(params: JsonObject) -> JsonObject:
    """What was told of it; of too much, the numbers and the beginning of the words."""
    told = {key: value for key, value in params.items() if key not in ("progressToken", "_meta")}
    if measured(told, PROGRESS_BYTES)[1] < PROGRESS_BYTES:
        return told
    numbers = {key: told[key] for key in ("progress", "total") if isinstance(told.get(key), int | float)}
    words = told.get("message")
    return numbers | ({"message": cut(words, PROGRESS_BYTES)} if isinstance(words, str) else {})


def _stopping(server: str) -> BackendDisconnected:
    return BackendDisconnected(
        f'emceepee is stopping, so the call to "{server}" was given up. It is not known whether it ran there. '
        "Call again once emceepee is back.",
        details={"server": server, "mayHaveRun": True},
    )


def _show(task: Task, span: Span) -> None:
    """How a request ended that had become a task."""
    if task.status is TaskStatus.CANCELLED:
        span.cancelled()
    elif task.status is TaskStatus.COMPLETED and task.result is not None:
        span.replied(task.result)
    else:
        span.failed(task.message or str(task.status))
