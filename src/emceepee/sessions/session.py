"""One caller's session: its connections, calls, tasks, questions, timers, and events."""

import asyncio
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from emceepee.backends.connection import Connection
from emceepee.clock import milliseconds
from emceepee.errors import BackendDisconnected
from emceepee.ids import Ulids
from emceepee.sessions.call import Call, OnProgress, patience, time_to_live
from emceepee.sessions.calls import Calls
from emceepee.sessions.context import SessionContext
from emceepee.sessions.conversations import Conversations
from emceepee.sessions.deadline_timer import DeadlineTimer
from emceepee.sessions.events.activity import Activity
from emceepee.sessions.events.buffers import BufferBudget, ServerBuffers
from emceepee.sessions.events.change_signal import ChangeSignal
from emceepee.sessions.foreign_ids import why_foreign
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.questions.questions import Questions
from emceepee.sessions.records import RecordKind, SessionProfile
from emceepee.sessions.results.stored_results import StoredResults
from emceepee.sessions.session_servers import SessionServers
from emceepee.sessions.stored_task import StoredTask
from emceepee.sessions.tasks import Tasks
from emceepee.sessions.timers import Timers
from emceepee.sessions.unsaved import Unsaved
from emceepee.state.call_step import WAITING, WAITING_FOR_ANSWERS
from emceepee.state.events import EventType
from emceepee.state.session_key import SessionKey
from emceepee.state.stored_result import StoredResult
from emceepee.state.task import Task
from emceepee.telemetry import spans
from emceepee.telemetry.journal import NO_OWNER, Journal, SpanOwner
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from emceepee.search.shapes import ObservedShapes
    from emceepee.sessions.lists.entry_search import EntrySearch

log = EventLog("sessions")


class Session:
    """Call `open` first. `close` ends everything that the session started."""

    # A dict of more than thirty attributes takes 1.4 KB more, and a process may have many idle sessions.
    __slots__ = (
        "__weakref__",
        "_buffer_budget",
        "_buffers",
        "_connections",
        "_deadline_timer",
        "_is_closing",
        "_parts",
        "_results",
        "_search",
        "activity",
        "calls",
        "change_signal",
        "clock",
        "conversations",
        "ids",
        "is_awake",
        "is_lost",
        "is_open",
        "journal",
        "keys",
        "limits",
        "notice_options",
        "open_calls",
        "open_streams",
        "principal",
        "profile",
        "questions",
        "scripts",
        "sealing",
        "servers",
        "session_id",
        "shapes",
        "tasks",
        "timers",
        "touched",
        "unsaved",
    )

    def __init__(
        self, session_id: str, principal: str, parts: SessionParts, profile: SessionProfile | None = None
    ) -> None:
        self.session_id, self.principal = session_id, principal
        self.clock, self.limits = parts.clock, parts.limits
        self._parts = parts
        self.servers = SessionServers(self, parts)
        self._connections = self.servers.connections
        self._buffers: dict[str, ServerBuffers] = {}
        self._buffer_budget = BufferBudget(self.limits.buffered_bytes_per_session, self._buffers)
        self._search: EntrySearch | None = None  # created by the first search
        self.shapes: ObservedShapes | None = None  # observed result shapes, once a caller wants them
        self.notice_options = parts.notice_options
        self.scripts = parts.scripts
        self.conversations: Conversations | None = None  # set if several conversations share the session
        self.profile = profile or SessionProfile(secret=secrets.token_hex(16), opened_at=self.clock.now())
        self.keys: frozenset[SessionKey] = frozenset()  # the keys of this session
        self.unsaved = Unsaved()
        self.sealing = parts.sealing
        self._results: StoredResults | None = None  # created with the first large result
        self.is_open = False  # whether its servers are known
        self.is_awake = False
        self.open_streams = 0  # streams that a caller is reading now
        self.open_calls = 0  # tool calls being served now
        self.touched = self.clock.monotonic()
        self._is_closing = False
        self.is_lost = False  # whether another process has taken over the session
        ids = self.ids = Ulids(lambda: milliseconds(self.clock.now()))
        timer = self._deadline_timer = DeadlineTimer(self.clock, self._apply_deadlines)
        self.change_signal = ChangeSignal()
        self.activity = Activity(self.clock, ids, self.limits, parts.budget, self.unsaved)
        self.activity.event_signal.watch(self.change_signal.notify)
        self.journal = Journal(
            parts.journals,
            self.clock,
            ids,
            most=self.limits.requests_per_session,
            changed=self.change_signal.notify,
            owner=SpanOwner(session_id, principal, self.touched) if parts.journals.observers else NO_OWNER,
        )
        context = SessionContext(
            activity=self.activity,
            clock=self.clock,
            ids=ids,
            limits=self.limits,
            results=parts.results,
            unsaved=self.unsaved,
            sealing=self.sealing,
            schedule_by=timer.advance_to,
            notify_change=self.change_signal.notify,
            why_foreign=self.why_foreign,
        )
        self.questions = Questions(context)
        self.tasks = Tasks(context)
        self.calls = Calls(context, self.tasks, self.questions)
        self.timers = Timers(context)

    @property
    def results(self) -> StoredResults:
        """Large results, which callers read in parts."""
        if self._results is None:
            self._results = StoredResults(
                self.session_id,
                self._parts.large_results,
                clock=self.clock,
                limits=self.limits,
                unsaved=self.unsaved,
                new_id=self.ids.new,
                why_foreign=self.why_foreign,
            )
        return self._results

    def why_foreign(self, item_id: str) -> str | None:
        return why_foreign(item_id, self.profile)

    def stored_result(self, handle: str) -> StoredResult | None:
        return None if self._results is None else self._results.find(handle)

    def __repr__(self) -> str:
        state = "closed" if self._is_closing else "awake" if self.is_awake else "asleep"
        counts = f"servers={len(self._connections)} calls={len(self.calls)} tasks={len(self.tasks.working())}"
        return f"<Session {self.session_id} {state} {counts} questions={len(self.questions.open())}>"

    async def open(self) -> None:
        """Load the list of servers. Nothing is connected yet."""
        await self.servers.open()
        self.is_open = True

    def wake(self) -> None:
        """Connect every configured server in the background on the first tool call, unless servers connect on use."""
        if self.is_awake:
            return
        self.is_awake = True
        if not self.profile.was_used:
            self.update_profile(was_used=True)
        if not self.profile.connects_on_use:
            self.servers.start()

    async def sleep(self) -> None:
        """Disconnect every server until the session is used again. Timers still fire, and finished tasks stay."""
        self.is_awake = False
        self._end_search()
        await self.servers.rest()

    def update_profile(self, **known: Any) -> None:
        """Update what is known about the caller."""
        self.profile = replace(self.profile, **known)
        self.unsaved.mark(RecordKind.SESSION)

    def apply_deadlines(self) -> None:
        if (following := self._apply_deadlines(self.clock.now())) is not None:
            self._deadline_timer.advance_to(following)

    def begin_stop(self) -> None:
        """Give running calls time to finish. Timeouts and questions no longer turn them into tasks."""
        self.calls.end_promotion()

    def stop(self) -> None:
        """Fail calls and tasks now, so that waiting callers get an answer."""
        # Reject questions first: they end because their servers stop, not because their calls end.
        for server in {question.server for question in self.questions.open()}:
            self.questions.reject_of_server(server, "emceepee is stopping")
        self.calls.stop()
        self.activity.end_waits()

    def lose(self) -> None:
        """Fail waiting calls because another process has taken over the session. Nothing more is saved."""
        self.is_lost = True
        self.calls.stop(is_lost=True)
        self.activity.end_waits()

    def touch(self) -> None:
        """Reset the idle time."""
        self.touched = self.clock.monotonic()

    @property
    def is_busy(self) -> bool:
        """Whether a call runs, a question is open, or a stream is being read."""
        return bool(self.open_calls or self.open_streams or len(self.calls) or self.questions.is_any_open)

    @property
    def idle_seconds(self) -> float:
        """Return the seconds since the last `touch`, or 0 while the session is busy."""
        return 0.0 if self.is_busy else self.clock.monotonic() - self.touched

    async def close(self) -> None:
        self.servers.leave()
        log.info("registry_shutdown_start", serverCount=len(self._connections))
        self._is_closing = True
        self._deadline_timer.close()
        self.servers.leave_logins()
        await self.calls.close()
        if self._results is not None:
            await self._results.close()
        await self.servers.close()
        self._end_search()
        # The parts form a reference cycle, which only the garbage collector frees. Drop the large data now.
        self.tasks.close()
        self.activity.close()
        self.journal.close()
        self._buffers.clear()
        log.info("registry_shutdown_complete")

    def _apply_deadlines(self, now: datetime) -> datetime | None:
        # Questions first: an unanswered one must time out before the end of its task withdraws it.
        deadlines = [self.questions.tick(now)]
        self.calls.expire_tasks(now)
        deadlines += [self.tasks.tick(now), self.timers.tick(now)]
        return min((deadline for deadline in deadlines if deadline is not None), default=None)

    # Servers.

    @property
    def connections(self) -> list[Connection]:
        return list(self._connections.values())

    def has_server(self, name: str) -> bool:
        return name in self._connections

    def connection(self, name: str) -> Connection:
        """Raises: UnknownBackend."""
        return self._connections.get(name) or self.servers.find(name)

    def keep_settings(self, server: str) -> None:
        self.unsaved.mark(RecordKind.SERVER, server)

    async def mark_sent(self, plan: Call) -> None:
        await self.calls.mark_sent(plan)

    def emit_connection_event(self, server: str, event: EventType, data: JsonObject) -> None:
        """Emit the event. Skip it while the session closes, and skip a disconnect of a removed server."""
        if event is EventType.RESTARTED:
            self._parts.dialer.figures.count_restart(server)
        if not self._is_closing and (server in self._connections or event is not EventType.SERVER_DISCONNECTED):
            self.activity.emit(event, server, **data)

    def handle_link_loss(self, server: str, reason: str) -> JsonObject:
        """Reject the questions of a lost link, and return the counts of invalidated tasks and questions.

        Other calls fail with the link. Calls that the backend runs as its own tasks survive it, with their questions.
        """
        followed = {call.call_id for call in self.calls.followed(server)}
        invalidated = {
            "tasks": sum(task.task_id not in followed for task in self.tasks.working(server)),
            "pendingRequests": sum(item.call_id not in followed for item in self.questions.open(server=server)),
        }
        self.questions.reject_of_server(server, reason, but_of=followed)
        return invalidated

    def fail_all_of(self, server: str, reason: str) -> None:
        """Fail all calls to the server and reject its questions now, because nothing more will come from it."""
        # Questions first: they end because the server is gone, not because their calls end.
        self.questions.reject_of_server(server, reason)
        self.calls.fail_calls_to(server, BackendDisconnected(reason, details={"server": server}))

    def forget_server(self, name: str) -> None:
        """Drop the buffers and result shapes of a removed server."""
        self._buffers.pop(name, None)
        if self.shapes is not None:
            self.shapes.forget(name)

    # What backends send.

    def buffers(self, server: str) -> ServerBuffers:
        buffers = self._buffers.get(server)
        if buffers is None:
            buffers = self._buffers[server] = ServerBuffers(
                server, self.limits, self.change_signal.notify, self._buffer_budget
            )
        return buffers

    def buffers_of(self, server: str | None) -> list[ServerBuffers]:
        """Return the buffers of one server, or of all. Raises: UnknownBackend."""
        if server is None:
            return list(self._buffers.values())
        self.connection(server)
        return [self.buffers(server)]

    def give_up_asking(self, request_id: str) -> None:
        """Stop waiting for a native answer that was unusable or missing. The waiting calls become tasks."""
        question = self.questions.find(request_id)
        if question is not None and self.questions.native is not None:
            self.questions.native.give_up(request_id)
            calls = self.questions.calls_of(question)
            self.calls.promote_for_question(self.calls.in_flight(question.server) if calls is None else calls)

    # Calls.

    async def call(
        self,
        server: str,
        method: str,
        params: JsonObject,
        *,
        tool: str,
        arguments: JsonObject | None = None,
        timeout: float | None = None,
        ttl: float | None = None,
        wait_for_answers: bool = False,
        on_progress: OnProgress | None = None,
        on_call: Callable[["Session", Call], None] | None = None,
    ) -> JsonObject | Task:
        """Return the backend's raw result, or the task that the call became. Cancelling the wait cancels the call.

        Raises:
            EmceepeeError
        """
        connection = self.connection(server)
        seconds = patience(self.limits, connection.spec, timeout, is_quiet=on_progress is None)
        call = Call(
            connection=connection,
            method=method,
            params=params,
            tool=tool,
            arguments=arguments or {},
            ttl=time_to_live(self.limits, ttl),
            state=WAITING_FOR_ANSWERS if wait_for_answers else WAITING,
            on_progress=on_progress,
            span=spans.current(),
            patience=seconds,
        )
        return await self.run(call, seconds, on_call)

    async def run(
        self, call: Call, seconds: float, on_call: Callable[["Session", Call], None] | None = None
    ) -> JsonObject | Task:
        """Start and await a call that was created elsewhere, like `call`. Raises: EmceepeeError."""
        self.calls.start(call)
        if on_call is not None:
            on_call(self, call)
        outcome = await self.calls.wait(call, seconds) or call.result()
        if self.shapes is not None and call.method == "tools/call" and not isinstance(outcome, Task):
            self.shapes.observe(call.server, call.tool, outcome)
        return outcome

    # Search. The imports are local, so that sessions without a search do not pay for them.

    def search(self) -> "EntrySearch":
        from emceepee.sessions.lists.entry_search import NO_VECTORS, EntrySearch

        if self._search is None:
            self._search = EntrySearch(self.limits, self._parts.vectors or NO_VECTORS)
        return self._search

    def observe_shapes(self) -> "ObservedShapes":
        """Record the shape of each tool's first result from now on."""
        from emceepee.search.shapes import ObservedShapes

        if self.shapes is None:
            self.shapes = ObservedShapes()
        return self.shapes

    def _end_search(self) -> None:
        self.shapes = None
        if self._search is not None:
            self._search.close()
            self._search = None

    # Storage.

    @property
    def due_at(self) -> datetime | None:
        """Return when the session needs work even if no caller asks, or None."""
        if self.calls.has_stored:
            return self.profile.opened_at  # in the past: if this process ends, another must resume the calls at once
        return self.timers.next_firing

    def resume_call(self, task: Task, kept: StoredTask) -> "asyncio.Future[None] | None":
        """Resume a call that another process started. Return None if the server is gone or has another URL."""
        connection = self._connections.get(task.server)
        if connection is None or not kept.is_of(connection.spec):
            return None
        if kept.session is not None:
            connection.restore_session(kept.session)
        return self.calls.resume(task, connection, params=kept.params, backend_task=kept.task).finished

    def resume_script(self, task: Task, record: bytes) -> "asyncio.Future[None] | None":
        """Resume a script that another process started. Return None if that is not possible here."""
        script = None if self.scripts is None else self.scripts.restore(self, task, record)
        return None if script is None else self.calls.resume(task, script, stored_as=RecordKind.SCRIPT).finished
