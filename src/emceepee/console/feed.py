"""The feed of an open page: the full state once, then the changes, as server-sent events."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from typing import Protocol

from emceepee import __version__
from emceepee.backends.connection import Connection
from emceepee.clock import Clock, epoch_milliseconds, iso, within
from emceepee.console.feed_frames import Frame, gone_frame, make_frame
from emceepee.console.peer_feeds import PeerFeeds
from emceepee.console.peers import OWN, NoPeers, PeerConsoles
from emceepee.console.rows import SHOWN_LINE_BYTES, log_view, row
from emceepee.console.session_reporters import SessionReporters
from emceepee.futures import let_others_run
from emceepee.sessions.events.buffers import LogLine
from emceepee.sessions.session import Session
from emceepee.sessions.views import event_view, question_view, server_summary, task_view, timer_view
from emceepee.state.events import Event
from emceepee.state.limits import Limits
from emceepee.telemetry.redaction import redacted
from emceepee.telemetry.spans import Span
from emceepee.telemetry.value_preview import preview
from emceepee.web.streams import PING, PING_SECONDS
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

BATCH_SECONDS = 0.1  # between two batches: a page need not receive every step
LONGEST_SECONDS = 3600.0  # then the page reconnects and must still be logged in
READY_SECONDS = 1.0  # for the feeds of other replicas; later data is added as it arrives
MOST_ROWS = 500  # in one message, so that a page is never busy with one message for long
ROW_BYTES = 3 << 10  # of a request, at most: its arguments, its error, and its progress
MOST_BYTES = 192 << 10  # after which a message ends, so that building one never blocks the event loop for long


class SessionSource(Protocol):
    """The sessions of this process, as the console sees them."""

    @property
    def is_sure(self) -> bool:
        """Whether no other replica can have taken over any of them. If False, call `confirm`."""
        ...

    async def confirm(self) -> None: ...
    def sessions_of(self, principal: str) -> list[Session]: ...
    def watch(self, watcher: Callable[[Session], None]) -> None: ...
    def unwatch(self, watcher: Callable[[Session], None]) -> None: ...
    def end(self, session: Session) -> Awaitable[bool]: ...


class Feed:
    """The feed of one page: `frames` is the stream. It includes the sessions of `peers`."""

    def __init__(
        self, source: SessionSource, principal: str, clock: Clock, limits: Limits, peers: PeerConsoles | None = None
    ) -> None:
        self._source, self._principal, self._clock, self._limits = source, principal, clock, limits
        self._followed: dict[str, _SessionFeed] = {}
        self._due = asyncio.Event()
        self._is_new = True  # whether sessions began or ended since the last check
        self.reporters = SessionReporters()
        self._others = PeerFeeds(peers or NoPeers(), principal, clock, self.reporters, self._due.set)

    async def frames(self) -> AsyncGenerator[bytes, None]:
        began = self._clock.monotonic()
        self._source.watch(self._sessions_changed)
        self._others.start()
        try:
            yield make_frame("hello", self._hello()).encoded
            for frame in self._changed_frames():
                yield frame
                await let_others_run()
            while not self._others.are_settled and (left := began + READY_SECONDS - self._clock.monotonic()) > 0:
                if await self._wait_for_change(left):
                    for frame in self._changed_frames():
                        yield frame
                        await let_others_run()
            yield make_frame("ready", {}).encoded
            while self._clock.monotonic() - began < LONGEST_SECONDS:
                if not await self._wait_for_change(PING_SECONDS):
                    yield PING
                    continue
                await self._clock.sleep(BATCH_SECONDS)
                for frame in self._changed_frames():
                    yield frame
                    await let_others_run()
        finally:
            self._source.unwatch(self._sessions_changed)
            for followed in self._followed.values():
                followed.close()
            await self._others.close()

    async def _wait_for_change(self, seconds: float) -> bool:
        """Wait for a change. Return False if nothing changed before the timeout."""
        waiting = asyncio.ensure_future(self._due.wait())
        try:
            await within(self._clock, seconds, waiting)
        except TimeoutError:
            return False
        finally:
            waiting.cancel()
        self._due.clear()
        return True

    def _sessions_changed(self, session: Session) -> None:
        if session.principal == self._principal:
            self._is_new = True
            self._due.set()

    def _changed_frames(self) -> Iterator[bytes]:
        if self._is_new:
            self._is_new = False
            yield from self._session_changes()
        for session_id, followed in list(self._followed.items()):
            if followed.is_different:
                for frame in followed.changed_frames():
                    if frame.name != "session" or self.reporters.tell(OWN, session_id):
                        yield frame.encoded
        yield from self._others.take()

    def _session_changes(self) -> Iterator[bytes]:
        present = {session.session_id: session for session in self._source.sessions_of(self._principal)}
        for session_id in self._followed.keys() - present.keys():
            self._followed.pop(session_id).close()
            if self.reporters.end(OWN, session_id):
                yield gone_frame(session_id).encoded
        for session_id, session in present.items():
            if session_id not in self._followed:
                self._followed[session_id] = _SessionFeed(session, self._due.set)

    def _hello(self) -> JsonObject:
        limits = self._limits
        return {
            "version": __version__,
            "principal": self._principal,
            "now": epoch_milliseconds(self._clock.now()),
            "limits": {
                "requestsPerSession": limits.requests_per_session,
                "requestsInAll": limits.requests_in_all,
                "eventsPerSession": limits.events_per_session,
                "logLinesPerServer": limits.log_lines_per_server,
            },
        }


class _SessionFeed:
    """One session and the page's position in it."""

    def __init__(self, session: Session, due: Callable[[], None]) -> None:
        self._session, self._due = session, due
        self.is_different = True
        self._revision = self._event = self._number = 0
        self._lines: dict[str, int] = {}
        self._shown: JsonObject | None = None
        session.change_signal.watch(self._changed)

    def close(self) -> None:
        self._session.change_signal.unwatch(self._changed)

    def _changed(self) -> None:
        if not self.is_different:
            self.is_different = True
            self._due()

    def changed_frames(self) -> Iterator[Frame]:
        self.is_different = False
        session = self._session
        view = session_view(session)
        if (lasting := _without_countdowns(view)) != self._shown:
            self._shown = lasting
            yield make_frame("session", view)
        spans, self._revision = session.journal.since(self._revision), session.journal.revision
        for rows in _portions((ROW_BYTES, self._row(span)) for span in spans):
            yield make_frame("requests", {"rows": rows})
        events, self._event = session.activity.seen_since(self._event)
        for shown in _portions(_shown_event(event, session) for event in events):
            yield make_frame("events", {"events": shown})
        lines = list(self._new_lines())
        for views in _portions((_size(line.data), log_view(line, session)) for line in lines):
            yield make_frame("logs", {"logs": views})

    def _row(self, span: Span) -> JsonObject:
        """Return the row of a request.

        The first time it includes the arguments: they are its largest part and do not change.
        """
        if span.number <= self._number:
            return row(span, self._session)
        self._number = span.number
        return row(span, self._session) | {"args": redacted(span.arguments)}

    def _new_lines(self) -> Iterator[LogLine]:
        for buffers in self._session.buffers_of(None):
            lines, self._lines[buffers.server] = buffers.tail.since(self._lines.get(buffers.server, 0))
            yield from lines


def _portions(views: Iterable[tuple[int, JsonObject]]) -> Iterator[list[JsonObject]]:
    """Group the views into messages by the size of their sources. Views are created lazily."""
    portion: list[JsonObject] = []
    left = MOST_BYTES
    for size, view in views:
        portion.append(view)
        left -= size
        if left <= 0 or len(portion) == MOST_ROWS:
            yield portion
            portion, left = [], MOST_BYTES
    if portion:
        yield portion


def _size(value: object) -> int:
    """Return the size of a value for redaction."""
    return min(len(encode(value)), SHOWN_LINE_BYTES)


def _shown_event(event: Event, session: Session) -> tuple[int, JsonObject]:
    view = event_view(event)
    data, _ = preview(view["data"], SHOWN_LINE_BYTES)
    return _size(view["data"]), {"session": session.session_id} | redacted(view | {"data": data})


def session_view(session: Session) -> JsonObject:
    """Return the current state of one session."""
    servers = session.servers
    disabled: list[JsonObject] = [{"name": spec.name, "url": spec.target.label} for spec in servers.disabled]
    disabled += [
        {"name": spec.name, "url": spec.target.label, "isConfigured": True} for spec in servers.disabled_in_file
    ]
    return {
        "id": session.session_id,
        "label": session.profile.label,
        "transport": session.profile.transport,
        "openedAt": iso(session.profile.opened_at),
        "isAwake": session.is_awake,
        "canEnd": session.profile.transport != "stdio",  # a stdio session ends with its process
        "servers": [_owned_row(connection, session) for connection in session.connections],
        "questions": [
            {"kind": str(question.kind)} | question_view(question, task_id=session.tasks.id_for(question))
            for question in session.questions.open()
        ],
        "tasks": [task_view(task) for task in session.tasks.all()],
        "timers": [timer_view(timer) for timer in session.timers.all(include_inactive=True)],
    } | ({"disabledServers": disabled} if disabled else {})


def _owned_row(connection: Connection, session: Session) -> JsonObject:
    """Return the server's row, with a mark if the server comes from the configuration file."""
    is_configured = session.servers.is_configured(connection.spec.name)
    return server_row(connection) | ({"isConfigured": True} if is_configured else {})


def server_row(connection: Connection) -> JsonObject:
    process = connection.process
    recorded = {"recording": True} if connection.recording.is_on else {}
    return server_summary(connection) | recorded | ({} if process is None else {"process": process})


def _without_countdowns(view: JsonObject) -> JsonObject:
    """Remove the fields that change with time alone, because they do not count as a change."""
    servers = [{key: value for key, value in server.items() if key != "nextRetryMs"} for server in view["servers"]]
    return view | {"servers": servers}
