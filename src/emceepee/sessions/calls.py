"""Calls in flight. A call belongs to the session: the tool that started it only waits, and a slow one becomes a task.

`step` decides what an event means for a call (see the timelines in `state/call_step.py`). This module receives events
and carries out effects. Each call has a runner, the asyncio task that asks the backend. The tool waits for the future
`released`:

    tool    start ── wait ────────┐ released         get_task_result ──┐ finished
    runner    └─ request ─────────┼────────────────────── result ──────┘
    state   waiting               promoted                finished
                                  └ task working          └ task completed
"""

import asyncio
from collections.abc import Awaitable, Iterable
from datetime import datetime

from emceepee.backends.backend_task import BackendTask
from emceepee.clock import Handle
from emceepee.errors import BackendDisconnected, EmceepeeError, ErrorCode, LinksNeeded, caught
from emceepee.futures import resolve
from emceepee.lifecycle import CLOSE_LINK_SECONDS, TaskOwner
from emceepee.sessions.asker import Asker
from emceepee.sessions.call import Call, Callee
from emceepee.sessions.context import SessionContext
from emceepee.sessions.events.buffers import cut, measured
from emceepee.sessions.questions.questions import Questions
from emceepee.sessions.records import RecordKind
from emceepee.sessions.tasks import Tasks
from emceepee.state.call_step import (
    BareEvent,
    CallEffect,
    CallEvent,
    CallStage,
    CallState,
    ErrorArrived,
    ProgressReported,
    ResultArrived,
    ServerRemoved,
    StatusReported,
    Stopping,
    step,
)
from emceepee.state.task import Task
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject

log = EventLog("calls")
PROGRESS_BYTES = 4 << 10
RECORD_SECONDS = 0.1  # a call in flight for longer is stored
_PROMOTIONS = (BareEvent.PATIENCE_OVER, BareEvent.QUESTION_ASKED)  # these answer a waiting caller with a task


class Calls:
    """All calls in flight of one session, including those promoted to tasks."""

    def __init__(self, context: SessionContext, tasks: Tasks, questions: Questions) -> None:
        self._tasks, self._questions = tasks, questions
        self._clock, self._ids, self._limits = context.clock, context.ids, context.limits
        self._runners = TaskOwner("calls")
        self._in_flight: dict[Call, None] = {}  # ordered, with fast removal
        self._promoted: dict[str, Call] = {}  # calls in flight that became tasks
        self._recorded: dict[str, Call] = {}  # calls in flight that are no tasks but are stored
        self._unsaved, self._sealing = context.unsaved, context.sealing
        self._recording: Handle | None = None
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._in_flight)

    async def close(self) -> None:
        if self._recording is not None:
            self._recording.cancel()
        await self._runners.close(within=CLOSE_LINK_SECONDS)

    # The tool's side.

    def start(self, call: Call) -> None:
        """Send the call. Raises: EmceepeeError if the limit of running calls and tasks is reached."""
        if len(self._in_flight) >= self._limits.tasks_per_session:
            raise EmceepeeError(
                f"{len(self._in_flight)} calls and tasks are running already, which is this session's limit. "
                f"Wait for one with {call_to('await_activity')}, or end one with {call_to('cancel_task')}.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
        self._in_flight[call] = None
        call.started_at = self._clock.monotonic()
        call.runner = self._runners.spawn(self._run(call), name=call.method)
        if self._recording is None and self._unsaved.is_followed:
            self._recording = self._clock.call_later(RECORD_SECONDS, self._record_slow)

    async def wait(self, call: Call, patience: float) -> Task | None:
        """Wait for the outcome (None) or until the call becomes a task. Cancelling the wait cancels the call."""
        if call.state.stage is CallStage.WAITING:
            deadline = self._clock.call_later(patience, lambda: self._apply(call, BareEvent.PATIENCE_OVER))
            try:
                await call.released
            except asyncio.CancelledError:
                self._apply(call, BareEvent.WAIT_CANCELLED)
                raise
            finally:
                deadline.cancel()
        return None if call.call_id is None else self._tasks.find(call.call_id)

    def promote(self, call: Call) -> None:
        """Continue the call as a task, because the client stopped waiting."""
        self._apply(call, BareEvent.CLIENT_GONE)

    def cancel(self, call: Call) -> None:
        """Cancel the call, whether or not it is a task, and notify the backend."""
        self._apply(call, BareEvent.CANCEL_REQUESTED)

    def cancel_task(self, task_id: str) -> Task:
        """Cancel the task and return its current state. Raises: EmceepeeError if there is none."""
        if (call := self._promoted.get(task_id)) is not None:
            self.cancel(call)
        return self._tasks.get(task_id)

    def find_task(self, task_id: str) -> Call | None:
        """Return the call that runs as this task."""
        return self._promoted.get(task_id)

    def store_undelivered(self, call: Call) -> None:
        """Store the outcome as a finished task, because no client read the reply."""
        self._apply(call, BareEvent.REPLY_UNREAD)

    # The backend's side.

    def record_backend_task(self, call: Call, task: BackendTask) -> None:
        """Record a new state of the task that the backend runs for the call."""
        before, call.backend_task = call.backend_task, task
        if task.message is not None and (before is None or before.message != task.message):
            self._apply(call, StatusReported(task.message))
            if task.is_kept_as(before):
                return
        if task.outlives_link:
            self.store(call)

    def store(self, call: Call) -> None:
        """Store the call, if possible, so that another process can resume it if this one ends."""
        if not self._unsaved.is_followed:
            return
        if not self._sealing.is_loaded:
            self._runners.spawn(self.store_with_key(call), name="key")
        elif self._sealing.sealer is not None and not call.state.has_ended and call.can_be_stored:
            call_id = self.identify(call)
            call.is_stored = True
            if call.state.stage is CallStage.WAITING:
                self._record(call_id, call)
            self._unsaved.mark(call.stored_as, call_id)

    async def store_with_key(self, call: Call) -> None:
        """Like `store`, but load the sealing key first, so that the record is marked before the caller continues."""
        if self._unsaved.is_followed:
            await self._sealing.load()
            if self._sealing.is_loaded:  # if loading failed, store nothing: a later record could be outdated
                self.store(call)

    async def store_before_send(self, call: Call) -> None:
        """Store a call that waits before it is sent, so that another process can send it."""
        call.is_unsent = True
        await self.store_with_key(call)

    async def mark_sent(self, call: Call) -> None:
        """Wait until the store records that the call may have been sent."""
        call.is_unsent = False
        if call.is_stored and call.call_id is not None:
            call.is_stored = False
            self._unsaved.mark(call.stored_as, call.call_id)
            await self._unsaved.save()

    def followed(self, server: str | None = None) -> list[Call]:
        """Return the calls that their backends run as tasks of their own. They do not end with the connection."""
        return [
            call
            for call in self._in_flight
            if server in (None, call.server) and call.backend_task is not None and call.backend_task.outlives_link
        ]

    def in_flight(self, server: str) -> list[Call]:
        return [call for call in self._in_flight if call.server == server]

    def identify(self, call: Call) -> str:
        """Return the call's id, and assign one if needed. If the call becomes a task, the task has the same id."""
        if call.call_id is None:
            call.call_id = self._ids.new()
        return call.call_id

    def possible_origins(self, server: str, origin: Call | None) -> list[Call]:
        """Return the calls that may have asked a new question of this server: the origin, if it is known.

        Otherwise exclude calls that surely wait for the answer to another question, unless all do: tools ask one
        question at a time.
        """
        if origin is not None:
            return [origin]
        calls = self.in_flight(server)
        if len(calls) > 1 and self._questions.is_any_open:
            calls = [call for call in calls if not self._questions.is_surely_asking(call)] or calls
        return calls

    def promote_for_question(self, calls: Iterable[Call], *, asked_by: Asker | None = None) -> None:
        """Promote the call that asked, or every call that may have: a model that waits cannot answer.

        Calls whose caller was asked natively (`asked_by`) keep waiting for the answer.
        """
        for call in calls:
            if asked_by is None or call.asker is not asked_by:
                self._apply(call, BareEvent.QUESTION_ASKED)

    def report_progress(self, call: Call, params: JsonObject) -> None:
        self._apply(call, ProgressReported(_progress(params)))

    # Endings from outside the call.

    def fail_calls_to(self, server: str, error: EmceepeeError) -> None:
        for call in self.in_flight(server):
            self._apply(call, ServerRemoved(error))

    def expire_tasks(self, now: datetime) -> None:
        for task_id in self._tasks.overdue(now):
            self._apply(self._promoted[task_id], BareEvent.TASK_EXPIRED)

    def end_promotion(self) -> None:
        """Stop promoting calls on timeouts and questions: the process and its tasks will stop soon.

        Waiting callers keep waiting until then.
        """
        self._is_stopping = True

    def stop(self, *, is_lost: bool = False) -> None:
        """Fail every call and task now, because the process stops or another process took over the session.

        Stored calls are detached instead: another process can continue them.
        """
        self.detach_stored()
        for call in list(self._in_flight):
            self._apply(call, Stopping(_lost(call.server) if is_lost else _stopping(call.server)))

    def detach_stored(self) -> None:
        """Stop following stored calls, which another process can continue."""
        for call in list(self._in_flight):
            if call.is_stored:
                self._apply(call, BareEvent.CLIENT_GONE)
                self._apply(call, BareEvent.LEFT_BEHIND)

    # Storage.

    @property
    def has_stored(self) -> bool:
        """Whether another process could resume any of the calls."""
        return any(call.is_stored for calls in (self._promoted, self._recorded) for call in calls.values())

    def find_stored(self, call_id: str) -> Call | None:
        """Return the call with that id if another process could resume it."""
        call = self._promoted.get(call_id) or self._recorded.get(call_id)
        return call if call is not None and call.is_stored else None

    def resume(
        self,
        task: Task,
        connection: Callee,
        *,
        params: JsonObject | None = None,
        backend_task: BackendTask | None = None,
        stored_as: RecordKind = RecordKind.BACKEND_TASK,
    ) -> Call:
        """Resume a call that another process started. With `params`, the call was not sent yet."""
        call = Call(
            connection=connection,
            method=task.method,
            params=params or {},
            tool=task.tool,
            arguments=task.arguments,
            ttl=task.ttl,
            state=CallState(CallStage.PROMOTED, has_task=True, progress=task.progress),
            call_id=task.task_id,
            finished=asyncio.get_running_loop().create_future(),
            backend_task=backend_task,
            is_resumed=True,
            is_stored=True,
            stored_as=stored_as,
            is_unsent=params is not None,
        )
        self._in_flight[call] = None
        self._promoted[task.task_id] = call
        self._unsaved.mark(stored_as, task.task_id)
        call.runner = self._runners.spawn(self._run(call), name=f"resumed {task.method}")
        return call

    # The runner.

    async def _run(self, call: Call) -> None:
        began = self._clock.monotonic()
        if is_debugging := log.is_debugging():
            log.debug("tool_execution_start", server=call.server, tool=call.tool, hasArgs=bool(call.arguments))
        try:
            event: CallEvent = ResultArrived(await _ask(call))
        except EmceepeeError as error:
            if isinstance(error, LinksNeeded):
                self._questions.ask_to_open(call, error.links)
            event = ErrorArrived(caught(error))
        except asyncio.CancelledError:
            self._apply(call, BareEvent.RUNNER_CANCELLED)
            raise
        except Exception:
            # A defect in emceepee, which the runner's owner logs. Without an outcome, the caller would wait forever.
            words = f"{call.method} failed inside emceepee; its log says more."
            self._apply(call, ErrorArrived(EmceepeeError(words)))
            raise
        if is_debugging:
            took = round((self._clock.monotonic() - began) * 1000)
            log.debug("tool_execution_complete", server=call.server, tool=call.tool, durationMs=took)
        self._apply(call, event)

    def _apply(self, call: Call, event: CallEvent) -> None:
        """Apply an event to a call. No other code changes a call's state."""
        if self._is_stopping and event in _PROMOTIONS:
            return
        call.state, effects = step(call.state, event)
        for effect in effects:
            match effect:
                case CallEffect.RELEASE_WAITER:
                    if not call.released.done():
                        call.released.set_result(None)
                case CallEffect.LEAVE_FLIGHT:
                    self._leave_flight(call)
                case CallEffect.CANCEL_RUNNER:
                    if call.runner is not None:
                        call.runner.cancel()
                case CallEffect.LEAVE_RUNNER:
                    self._leave_runner(call)
                case CallEffect.FORWARD_PROGRESS | CallEffect.RECORD_PROGRESS:
                    self._show_progress(call, is_task=effect is CallEffect.RECORD_PROGRESS)
                case _:
                    self._change_task(call, event, effect)

    # Store slow calls: if this process ends, the next one can report their fate. Most calls finish before that.

    def recorded(self, call_id: str) -> Task | None:
        call = self._recorded.get(call_id)
        return None if call is None else self._tasks.task_of(call_id, call)

    def _record_slow(self) -> None:
        self._recording = None
        slow = self._clock.monotonic() - RECORD_SECONDS
        for call in self._in_flight:
            if call.started_at <= slow and call.state.stage is CallStage.WAITING:
                self._record(self.identify(call), call)
        if len(self._recorded) + len(self._promoted) < len(self._in_flight):
            self._recording = self._clock.call_later(RECORD_SECONDS, self._record_slow)

    def _record(self, call_id: str, call: Call) -> None:
        if call_id not in self._recorded:
            self._recorded[call_id] = call
            self._unsaved.mark(RecordKind.CALL, call_id)

    def _leave_runner(self, call: Call) -> None:
        """Stop following the call here. Its stored records stay."""
        self._in_flight.pop(call, None)
        if not call.is_unsent:
            call.connection.leave_task(call)
        if call.runner is not None:
            call.runner.cancel()
        if call.finished is not None:
            resolve(call.finished, None)

    def _forget_record(self, call: Call) -> None:
        if call.call_id is not None and self._recorded.pop(call.call_id, None) is not None:
            self._unsaved.mark(RecordKind.CALL, call.call_id)

    def _leave_flight(self, call: Call) -> None:
        self._in_flight.pop(call, None)
        if call.call_id is not None:
            self._forget_record(call)
            self._promoted.pop(call.call_id, None)
            if call.is_stored:
                self._unsaved.mark(call.stored_as, call.call_id)
            self._questions.withdraw_of_call(call.call_id)
        if self._questions.is_any_open and isinstance(call.state.outcome, dict):
            self._questions.rule_out(call)
        if call.finished is not None:
            resolve(call.finished, None)
        call.release_memory()

    def _change_task(self, call: Call, event: CallEvent, effect: CallEffect) -> None:
        task_id = self.identify(call)
        match effect:
            case CallEffect.CREATE_TASK:
                self._forget_record(call)
                if call.state.stage is CallStage.PROMOTED:
                    call.finished = asyncio.get_running_loop().create_future()
                    self._promoted[task_id] = call
                    why = "tool_execution_timeout" if event is BareEvent.PATIENCE_OVER else "tool_execution_promoted"
                    log.info(why, server=call.server, tool=call.tool, taskId=task_id)
                self._tasks.create(task_id, call)
            case CallEffect.FINISH_TASK if call.state.outcome is not None:
                self._tasks.finish(task_id, call.state.outcome)
            case CallEffect.CANCEL_TASK:
                self._tasks.cancel(task_id)
            case CallEffect.EXPIRE_TASK:
                self._tasks.expire(task_id)
            case CallEffect.RECORD_STATUS if call.state.message is not None:
                self._tasks.record_status(task_id, call.state.message)

    def _show_progress(self, call: Call, *, is_task: bool) -> None:
        progress = call.state.progress
        if progress is None:
            return
        if is_task:
            self._tasks.record_progress(self.identify(call), progress)
        if call.span is not None:
            call.span.progressed(progress)
        if call.on_progress is not None and not is_task:
            call.on_progress(progress)


def _ask(call: Call) -> Awaitable[JsonObject]:
    if call.is_resumed and call.backend_task is not None:
        return call.connection.follow(call.backend_task, origin=call)
    return call.connection.request(call.method, call.params, origin=call, plan=call)


def _progress(params: JsonObject) -> JsonObject:
    """Return the reported progress. If it is too large, keep the numbers and the beginning of the message."""
    progress = {key: value for key, value in params.items() if key not in ("progressToken", "_meta")}
    if measured(progress, PROGRESS_BYTES)[1] < PROGRESS_BYTES:
        return progress
    numbers = {key: progress[key] for key in ("progress", "total") if isinstance(progress.get(key), int | float)}
    message = progress.get("message")
    return numbers | ({"message": cut(message, PROGRESS_BYTES)} if isinstance(message, str) else {})


def _lost(server: str) -> BackendDisconnected:
    return BackendDisconnected(
        f'Another replica of emceepee took this session over, so the call to "{server}" was abandoned. It is not known '
        "whether it ran there: check before you call again.",
        details={"server": server, "reason": "replica", "mayHaveRun": True},
    )


def _stopping(server: str) -> BackendDisconnected:
    return BackendDisconnected(
        f'emceepee is stopping, so the call to "{server}" was abandoned. It is not known whether it ran there. '
        "Call again once emceepee is running.",
        details={"server": server, "mayHaveRun": True},
    )
