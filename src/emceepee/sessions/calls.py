"""Calls in flight. A call belongs to the session: the tool that started it only waits, and a slow one becomes a task.

What an event means for a call is decided by `step` (see the timelines in `state/call.py`). Here events come in and
effects are carried out. Each call has a runner, the asyncio task that asks the backend, and the tool waits for the
future `released`:

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
from emceepee.sessions.questions.required_links import ask_to_open
from emceepee.sessions.records import RecordKind
from emceepee.sessions.tasks import Tasks
from emceepee.state.call import (
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
RECORD_SECONDS = 0.1  # a call in flight for longer is in the store
_PROMISES = (BareEvent.PATIENCE_OVER, BareEvent.QUESTION_ASKED)  # whoever waits is answered with a task


class Calls:
    """The calls in flight of one session, those that have become tasks included."""

    def __init__(self, context: SessionContext, tasks: Tasks, questions: Questions) -> None:
        self._tasks, self._questions = tasks, questions
        self._clock, self._ids, self._limits = context.clock, context.ids, context.limits
        self._runners = TaskOwner("calls")
        self._in_flight: dict[Call, None] = {}  # ordered, and quick to leave
        self._promoted: dict[str, Call] = {}  # those of them that are tasks
        self._recorded: dict[str, Call] = {}  # those that are not, but that the store knows of
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
        """Send it. Raises: EmceepeeError if too much is at work already."""
        if len(self._in_flight) >= self._limits.tasks_per_session:
            raise EmceepeeError(
                f"{len(self._in_flight)} calls and tasks are at work already, which is this session's limit. "
                f"Wait for one with {call_to('await_activity')}, or end one with {call_to('cancel_task')}.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
        self._in_flight[call] = None
        call.started_at = self._clock.monotonic()
        call.runner = self._runners.spawn(self._run(call), name=call.method)
        if self._recording is None and self._unsaved.is_followed:
            self._recording = self._clock.call_later(RECORD_SECONDS, self._record_slow)

    async def wait(self, call: Call, patience: float) -> Task | None:
        """Until the outcome is there (None), or the call has become a task. Cancelling the wait cancels the call."""
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
        """The client stopped waiting: the call goes on as a task."""
        self._apply(call, BareEvent.CLIENT_GONE)

    def cancel(self, call: Call) -> None:
        """Give the call up, whether it has become a task or not; the backend is told."""
        self._apply(call, BareEvent.CANCEL_REQUESTED)

    def cancel_task(self, task_id: str) -> Task:
        """The task as it is now. Raises: EmceepeeError if there is none."""
        if (call := self._promoted.get(task_id)) is not None:
            self.cancel(call)
        return self._tasks.get(task_id)

    def find_task(self, task_id: str) -> Call | None:
        """The call that goes on as this task."""
        return self._promoted.get(task_id)

    def keep_undelivered(self, call: Call) -> None:
        """The reply found nobody to read it: its outcome is kept as a finished task."""
        self._apply(call, BareEvent.REPLY_UNREAD)

    # The backend's side.

    def record_backend_task(self, call: Call, task: BackendTask) -> None:
        """The backend runs it as a task of its own, and something about that is new."""
        before, call.backend_task = call.backend_task, task
        if task.message is not None and (before is None or before.message != task.message):
            self._apply(call, StatusReported(task.message))
            if task.is_kept_as(before):
                return
        if task.outlives_link:
            self.keep(call)

    def keep(self, call: Call) -> None:
        """Let another process go on with it if this one ends, if that is possible at all."""
        if not self._unsaved.is_followed:
            return
        if not self._sealing.is_loaded:
            self._runners.spawn(self.keep_at_once(call), name="key")
        elif self._sealing.sealer is not None and not call.state.has_ended and call.can_be_kept:
            call_id = self.identify(call)
            call.is_kept = True
            if call.state.stage is CallStage.WAITING:
                self._record(call_id, call)
            self._unsaved.mark(call.kept_as, call_id)

    async def keep_at_once(self, call: Call) -> None:
        """The same, and when this returns, the record is marked: whoever goes on only then is told what is kept."""
        if self._unsaved.is_followed:
            await self._sealing.load()
            if self._sealing.is_loaded:  # else nothing is kept: later, the record could be of an earlier moment
                self.keep(call)

    async def store_before_send(self, call: Call) -> None:
        """Store a call that waits before it is sent, so that another process can send it."""
        call.before_sending = self._mark_sent
        await self.keep_at_once(call)

    async def _mark_sent(self, call: Call) -> None:
        """Wait until the store records that the call may have been sent."""
        call.before_sending = None
        if call.is_kept and call.call_id is not None:
            call.is_kept = False
            self._unsaved.mark(call.kept_as, call.call_id)
            await self._unsaved.save()

    def followed(self, server: str | None = None) -> list[Call]:
        """The calls that their backends run as tasks of their own, which do not end with the connection."""
        return [
            call
            for call in self._in_flight
            if server in (None, call.server) and call.backend_task is not None and call.backend_task.outlives_link
        ]

    def in_flight(self, server: str) -> list[Call]:
        return [call for call in self._in_flight if call.server == server]

    def identify(self, call: Call) -> str:
        """Give the call an id, if it has none: that of its task, if it becomes one."""
        if call.call_id is None:
            call.call_id = self._ids.new()
        return call.call_id

    def possible_origins(self, server: str, origin: Call | None) -> list[Call]:
        """The calls that may have asked a new question of this server: the one it came from, if that is known.

        Else not one that surely waits for the answer to another question, unless all do: tools ask one thing at a time.
        """
        if origin is not None:
            return [origin]
        calls = self.in_flight(server)
        if len(calls) > 1 and self._questions.is_any_open:
            calls = [call for call in calls if not self._questions.is_surely_asking(call)] or calls
        return calls

    def promote_for_question(self, calls: Iterable[Call], *, asked_by: Asker | None = None) -> None:
        """A model that waits cannot answer: the call that asked, or every one that may have, becomes a task.

        Not those whose caller was `asked_by` the protocol's own means: they wait on for the answer.
        """
        for call in calls:
            if asked_by is None or call.asker is not asked_by:
                self._apply(call, BareEvent.QUESTION_ASKED)

    def promote_for_inner_call(self, call: Call) -> None:
        """The same for a script, one of whose own calls has become a task."""
        self._apply(call, BareEvent.QUESTION_ASKED)

    def report_progress(self, call: Call, params: JsonObject) -> None:
        self._apply(call, ProgressReported(_progress(params)))

    # Endings from elsewhere.

    def fail_calls_to(self, server: str, error: EmceepeeError) -> None:
        for call in self.in_flight(server):
            self._apply(call, ServerRemoved(error))

    def expire_tasks(self, now: datetime) -> None:
        for task_id in self._tasks.overdue(now):
            self._apply(self._promoted[task_id], BareEvent.TASK_EXPIRED)

    def promise_no_tasks(self) -> None:
        """The process will stop in a moment, and tasks with it: whoever waits goes on waiting until then."""
        self._is_stopping = True

    def stop(self, *, is_lost: bool = False) -> None:
        """Every call and task fails now: the process is stopping, or the session is another's.

        What the backend runs as a task of its own goes on, as one of ours that another process will follow.
        """
        self.detach_stored()
        for call in list(self._in_flight):
            self._apply(call, Stopping(_lost(call.server) if is_lost else _stopping(call.server)))

    def detach_stored(self) -> None:
        """Stop following stored calls, which another process can continue."""
        for call in list(self._in_flight):
            if call.is_kept:
                self._apply(call, BareEvent.CLIENT_GONE)
                self._apply(call, BareEvent.LEFT_BEHIND)

    # At rest.

    @property
    def has_kept(self) -> bool:
        """Whether another process could go on with any of them."""
        return any(call.is_kept for calls in (self._promoted, self._recorded) for call in calls.values())

    def kept(self, call_id: str) -> Call | None:
        """The call under that id, if another process could go on with it."""
        call = self._promoted.get(call_id) or self._recorded.get(call_id)
        return call if call is not None and call.is_kept else None

    def resume(
        self,
        task: Task,
        connection: Callee,
        *,
        params: JsonObject | None = None,
        backend_task: BackendTask | None = None,
        kept_as: RecordKind = RecordKind.BACKEND_TASK,
    ) -> Call:
        """Go on with what another process has begun. With `params` it was not sent yet."""
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
            is_kept=True,
            kept_as=kept_as,
        )
        if params is not None:
            call.before_sending = self._mark_sent
        self._in_flight[call] = None
        self._promoted[task.task_id] = call
        self._unsaved.mark(kept_as, task.task_id)
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
                ask_to_open(self._questions, call, error, seconds=self._limits.question_seconds)
            event = ErrorArrived(caught(error))
        except asyncio.CancelledError:
            self._apply(call, BareEvent.RUNNER_CANCELLED)
            raise
        except Exception:
            # A defect of ours, which the owner of the runner logs: whoever waits must not wait for ever.
            words = f"{call.method} failed inside emceepee; its log says more."
            self._apply(call, ErrorArrived(EmceepeeError(words)))
            raise
        if is_debugging:
            took = round((self._clock.monotonic() - began) * 1000)
            log.debug("tool_execution_complete", server=call.server, tool=call.tool, durationMs=took)
        self._apply(call, event)

    def _apply(self, call: Call, event: CallEvent) -> None:
        """The only place where a call's state changes."""
        if self._is_stopping and event in _PROMISES:
            return
        call.state, effects = step(call.state, event)
        for effect in effects:
            match effect:
                case CallEffect.RELEASE_WAITER:
                    resolve(call.released, None)
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

    # Should this process end now, whoever takes the session up can tell what became of a call. Most are quicker.

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
        """Its records stay as they are."""
        self._in_flight.pop(call, None)
        if call.before_sending is None:
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
            if call.is_kept:
                self._unsaved.mark(call.kept_as, call.call_id)
            self._questions.withdraw_of_call(call.call_id)
        if self._questions.is_any_open and isinstance(call.state.outcome, dict):
            self._questions.rule_out(call)
        if call.finished is not None:
            resolve(call.finished, None)
        call.let_go()

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
    """What the backend reported; of too much, the numbers and the beginning of the message."""
    progress = {key: value for key, value in params.items() if key not in ("progressToken", "_meta")}
    if measured(progress, PROGRESS_BYTES)[1] < PROGRESS_BYTES:
        return progress
    numbers = {key: progress[key] for key in ("progress", "total") if isinstance(progress.get(key), int | float)}
    message = progress.get("message")
    return numbers | ({"message": cut(message, PROGRESS_BYTES)} if isinstance(message, str) else {})


def _lost(server: str) -> BackendDisconnected:
    return BackendDisconnected(
        f'Another replica of emceepee took this session over, so the call to "{server}" was given up. It is not known '
        "whether it ran there: check before you call again.",
        details={"server": server, "reason": "replica", "mayHaveRun": True},
    )


def _stopping(server: str) -> BackendDisconnected:
    return BackendDisconnected(
        f'emceepee is stopping, so the call to "{server}" was given up. It is not known whether it ran there. '
        "Call again once emceepee is back.",
        details={"server": server, "mayHaveRun": True},
    )
