"""State changes of a connection, as session events and log lines."""

from typing import Any, Protocol

from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.state.connection.connection_state import LinkEnd, LinkEndKind
from emceepee.state.connection.retry import Retry
from emceepee.state.events import EventType
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject

log = EventLog("sessions")


class ConnectionChangeSignal(Protocol):
    def notify(self) -> None: ...


class Observer(Protocol):
    """The session, which observes its connections. Its methods must not raise."""

    @property
    def change_signal(self) -> ConnectionChangeSignal:
        """Return the signal that is set on each state change, including changes without an event."""
        ...

    def emit_connection_event(self, server: str, event: EventType, data: JsonObject) -> None: ...

    @property
    def idle_seconds(self) -> float:
        """Seconds since the session was last used; 0 while a call, task, question, or open stream uses it."""
        ...

    def keep_settings(self, server: str) -> None:
        """Store the settings for all future links to the server."""
        ...

    async def mark_sent(self, plan: Any) -> None:
        """Record that the call may have run. Return once the store no longer marks it as unsent."""
        ...

    def handle_link_loss(self, server: str, reason: str) -> JsonObject:
        """Reject all requests that wait on a lost link. Return the fields that describe what was invalidated."""
        ...


class ConnectionEvents:
    """Emits the events of each state change. A child process has additional events."""

    def __init__(self, spec: BackendSpec, observer: Observer) -> None:
        self._spec, self._observer = spec, observer
        self._is_process = isinstance(spec.target, StdioTarget)
        self._invalidated: JsonObject = {}  # fields that the last loss reported

    def signal_change(self) -> None:
        self._observer.change_signal.notify()

    def announce_connected(self, process: JsonObject | None, capabilities: JsonObject) -> None:
        if process is not None:
            self.emit(EventType.PROCESS_STARTED, pid=process["pid"])
        log.info("server_connected", server=self._spec.name, url=self._spec.target.label)
        self._tell(EventType.SERVER_CONNECTED, {"capabilities": capabilities})

    def announce_reconnected(self, process: JsonObject | None, *, tries: int, is_same: bool) -> None:
        """Report a reconnect; `is_same` means that the backend kept our session."""
        if process is not None:
            self.emit(EventType.RESTARTED, pid=process["pid"])
        kind = "blip" if is_same else "restart"
        self.emit(EventType.SERVER_RECONNECTED, attemptsTaken=tries, kind=kind, invalidated=self._invalidated)

    def announce_end(self, end: LinkEnd, process: JsonObject | None) -> None:
        """Report the end of a link. Requests waiting on it are rejected even if the end needs no event."""
        if end.kind is LinkEndKind.LOST and process is not None:
            self.emit(EventType.PROCESS_CRASHED, **_end_of(process))
        if end.kind is not LinkEndKind.CLOSED:
            self.emit(EventType.SERVER_DISCONNECTED, reason=end.reason)
        self._invalidated = self._observer.handle_link_loss(self._spec.name, end.reason)

    def announce_stop(self, process: JsonObject | None, end: LinkEnd) -> None:
        """Report an intentional stop. The exit status of an idle process is omitted, because it would look like a
        crash.
        """
        if process is None:
            return
        if end.kind is LinkEndKind.UNUSED:
            self.emit(EventType.PROCESS_STOPPED, pid=process["pid"], reason=end.reason)
        else:
            self.emit(EventType.PROCESS_STOPPED, **_end_of(process))

    def log_failure(self, reason: str, tries: int) -> None:
        """Log a failed connection attempt. More attempts may follow."""
        event = "server_reconnect_failed" if tries else "server_connect_failed"
        log.warning(event, server=self._spec.name, attempt=tries, error=reason)

    def announce_retry(self, retry: Retry) -> None:
        delay = round(retry.delay * 1000)
        if self._is_process:
            self.emit(EventType.RESTARTING, attempt=retry.attempt, delayMs=delay)
            return
        log.info("server_reconnecting", server=self._spec.name, attempt=retry.attempt, delayMs=delay)
        self._tell(EventType.SERVER_RECONNECTING, {"attempt": retry.attempt, "nextRetryMs": delay})

    def announce_giving_up(self, reason: str, attempts: int) -> None:
        if self._is_process and attempts:
            self.emit(EventType.RESTART_FAILED, attempts=attempts, error=reason)

    def emit(self, event: EventType, /, **data: object) -> None:
        """Emit an event and log it."""
        log.info(str(event), server=self._spec.name, **data)
        self._tell(event, data)

    def _tell(self, event: EventType, data: JsonObject) -> None:
        self._observer.emit_connection_event(self._spec.name, event, {"name": self._spec.name, **data})


def _end_of(process: JsonObject) -> JsonObject:
    return {key: process[key] for key in ("pid", "exitCode", "signal", "stderrTail") if key in process}
