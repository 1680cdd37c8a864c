"""The records of calls that became tasks: their visible state, retention, and events.

The call decides which record comes next (`state/call_step.py`). This module only enforces the time to live.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from emceepee.clock import within
from emceepee.errors import BackendDisconnected, EmceepeeError, ErrorCode, TimedOut
from emceepee.sessions.call import Call
from emceepee.sessions.context import SessionContext
from emceepee.sessions.records import RecordKind
from emceepee.sessions.results.result_budget import weight_of
from emceepee.state.events import EventType
from emceepee.state.question import Question
from emceepee.state.task import Task, TaskStatus
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.spans import Span
from emceepee.wire.json_types import JsonObject

log = EventLog("calls")
Resume = Callable[[Task], "asyncio.Future[None] | None"]  # resolved when the task has ended; None: not resumable
_END_EVENTS = {
    TaskStatus.COMPLETED: EventType.TASK_COMPLETED,
    TaskStatus.FAILED: EventType.TASK_FAILED,
    TaskStatus.CANCELLED: EventType.TASK_CANCELLED,
    TaskStatus.EXPIRED: EventType.TASK_EXPIRED,
}


@dataclass(slots=True, eq=False)
class _Kept:
    """A task record. While the task works, also the future of its call's end and the span to report to."""

    task: Task
    finished: "asyncio.Future[None] | None"
    span: Span | None


class Tasks:
    """The tasks of one session."""

    def __init__(self, context: SessionContext) -> None:
        self._activity, self._schedule_by = context.activity, context.schedule_by
        self._notify_change = context.notify_change
        self._clock, self._limits, self._results = context.clock, context.limits, context.results
        self._unsaved, self._why_foreign = context.unsaved, context.why_foreign
        self._kept: dict[str, _Kept] = {}

    def close(self) -> None:
        """Drop the task results, and keep only how each task ended."""
        self._results.leave(self)
        for kept in self._kept.values():
            kept.task = kept.task.without_result()

    # Queries.

    def find(self, task_id: str) -> Task | None:
        kept = self._kept.get(task_id)
        return None if kept is None else kept.task

    def get(self, task_id: str) -> Task:
        """Raises: EmceepeeError."""
        task = self.find(task_id)
        if task is None:
            why = self._why_foreign(task_id) or (
                f"{call_to('list_tasks')} with include_completed shows all; finished ones are stored for "
                f"{self._limits.task_retention_seconds / 60:g} minutes."
            )
            raise EmceepeeError(f'No task has the id "{task_id[:60]}" here. {why}', code=ErrorCode.TASK_NOT_FOUND)
        return task

    def all(self) -> list[Task]:
        return [kept.task for kept in self._kept.values()]

    def working(self, server: str | None = None) -> list[Task]:
        return [task for task in self.all() if server in (None, task.server) and not task.has_ended]

    def id_for(self, question: Question) -> str | None:
        """Return the task whose call asked the question, if the call is known and became a task."""
        return question.call_id if question.call_id in self._kept else None

    async def wait_until_finished(self, task_id: str, timeout: float | None) -> Task:
        """Return the task once it has ended. Wait for the call itself, without polling.

        Raises:
            TimedOut: the task is still running, and continues.
        """
        task, finished = self.get(task_id), self._kept[task_id].finished
        if finished is not None and not task.has_ended:
            left = (task.expires_at - self._clock.now()).total_seconds()
            seconds = left + 1 if timeout is None else timeout  # the task ends first, by its time to live
            try:
                await within(self._clock, seconds, finished)
            except TimeoutError:
                raise TimedOut(
                    f'Task "{task_id}" is still running after {seconds:g} s. Call '
                    f"{call_to('get_task_result')} or {call_to('await_activity')} again.",
                    details={"taskId": task_id},
                ) from None
        return self.get(task_id)

    # Records.

    def create(self, task_id: str, call: Call) -> None:
        task = self.task_of(task_id, call)
        self._kept[task_id] = _Kept(task, call.finished, call.span)
        self._unsaved.mark(RecordKind.TASK, task_id)
        self._schedule_by(task.next_deadline)
        if call.span is not None:
            call.span.became_task(task_id)
        self._emit_created(task)

    def task_of(self, task_id: str, call: Call) -> Task:
        """Return the task that the call would become now."""
        now = self._clock.now()
        return Task(
            task_id=task_id,
            server=call.server,
            tool=call.tool,
            method=call.method,
            arguments=call.arguments,
            created_at=now,
            updated_at=now,
            ttl=call.ttl,
            retention=timedelta(seconds=self._limits.task_retention_seconds),
            progress=call.state.progress,
            message=call.state.message,
        )

    def _emit_created(self, task: Task) -> None:
        ttl = round(task.ttl.total_seconds() * 1000)
        self._activity.emit(EventType.TASK_CREATED, task.server, taskId=task.task_id, toolName=task.tool, ttl=ttl)

    def record_progress(self, task_id: str, progress: JsonObject) -> None:
        kept = self._kept[task_id]
        kept.task = kept.task.with_progress(progress, self._clock.now())
        self._notify_change()

    def record_status(self, task_id: str, message: str) -> None:
        kept = self._kept[task_id]
        kept.task = kept.task.with_message(message, self._clock.now())
        self._notify_change()

    def finish(self, task_id: str, outcome: JsonObject | EmceepeeError) -> None:
        task, now = self._kept[task_id].task, self._clock.now()
        if isinstance(outcome, EmceepeeError):
            self._end(task.failed(outcome.body(), now))
        else:
            self._end(task.completed(outcome, now))

    def cancel(self, task_id: str) -> None:
        self._end(self._kept[task_id].task.cancelled(self._clock.now()))

    def expire(self, task_id: str) -> None:
        self._end(self._kept[task_id].task.expired(self._clock.now()))

    def _end(self, task: Task) -> None:
        """Record the end of the task, emit its event, and make room for its result."""
        kept = self._kept[task.task_id]
        span = kept.span
        kept.task, kept.finished, kept.span = task, None, None
        self._unsaved.mark(RecordKind.TASK, task.task_id)
        self._schedule_by(task.next_deadline)
        data: dict[str, object] = {"taskId": task.task_id, "toolName": task.tool}
        if task.status is TaskStatus.FAILED:
            data["error"] = task.message
            log.warning("task_failed", taskId=task.task_id, server=task.server, tool=task.tool, error=task.message)
        elif task.status is TaskStatus.COMPLETED:
            data["isError"] = bool((task.result or {}).get("isError"))
            log.info("task_completed", taskId=task.task_id, server=task.server, tool=task.tool)
        elif task.status is TaskStatus.EXPIRED:
            data["ttl"] = round(task.ttl.total_seconds() * 1000)
        if span is not None:
            _end_span(span, task)
        self._activity.emit(_END_EVENTS[task.status], task.server, **data)
        self._results.keep(self, task.task_id, weight_of(task))

    # Retention and memory.

    def overdue(self, now: datetime) -> list[str]:
        """Return the working tasks whose time to live has passed."""
        return [task.task_id for task in self.working() if task.is_due(now)]

    def tick(self, now: datetime) -> datetime | None:
        """Delete tasks whose retention has ended. Return the next deadline, if any."""
        for task in self.all():
            if task.has_ended and task.is_due(now):
                del self._kept[task.task_id]
                self._results.release(self, task.task_id)
                self._unsaved.mark(RecordKind.TASK, task.task_id)
                self._notify_change()
        return min((task.next_deadline for task in self.all()), default=None)

    def drop_result(self, result_id: str) -> None:
        """Drop the result of a task to free memory. Only how it ended stays."""
        kept = self._kept[result_id]
        log.warning("task_result_evicted", taskId=result_id, server=kept.task.server)
        kept.task = kept.task.without_result()
        self._unsaved.mark(RecordKind.TASK, result_id)
        self._notify_change()

    # Storage.

    def restore(self, tasks: Iterable[Task], resume: Resume) -> None:
        """Restore the tasks of a process that has ended, and continue working ones with `resume`.

        A task that cannot be resumed fails, because its progress is unknown.
        """
        for task in sorted(tasks, key=lambda task: task.task_id):
            self._kept[task.task_id] = _Kept(task, None, None)
            self._schedule_by(task.next_deadline)
            if task.has_ended:
                self._results.keep(self, task.task_id, weight_of(task))
            else:
                self._resume_or_fail(task, resume)

    def restore_calls(self, calls: Iterable[Task], resume: Resume) -> None:
        """Restore calls that were in flight when their process ended, and report each as a task."""
        for task in sorted(calls, key=lambda task: task.task_id):
            self._unsaved.mark(RecordKind.CALL, task.task_id)
            if task.task_id not in self._kept:
                self._kept[task.task_id] = _Kept(task, None, None)
                self._unsaved.mark(RecordKind.TASK, task.task_id)
                self._schedule_by(task.next_deadline)
                self._emit_created(task)
                self._resume_or_fail(task, resume)

    def _resume_or_fail(self, task: Task, resume: Resume) -> None:
        kept = self._kept[task.task_id]
        kept.finished = resume(task)
        if kept.finished is None:
            self._end(task.failed(_restarted(task).body(), self._clock.now()))


def _restarted(task: Task) -> BackendDisconnected:
    return BackendDisconnected(
        f'emceepee was restarted while "{task.tool}" of "{task.server}" ran. It is not known whether it ran to its end '
        "there: check before you call it again.",
        details={"server": task.server, "reason": "restart", "mayHaveRun": True},
    )


def _end_span(span: Span, task: Task) -> None:
    if task.status is TaskStatus.CANCELLED:
        span.cancelled()
    elif task.status is TaskStatus.COMPLETED and task.result is not None:
        span.replied(task.result)
    else:
        span.failed(task.message or str(task.status))
