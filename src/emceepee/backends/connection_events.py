"""What a session is told of a connection: the events, and what is in them."""

from typing import Protocol

from emceepee.json_types import JsonObject
from emceepee.state.events import EventType
from emceepee.state.retry import Retry


class Observer(Protocol):
    """The session, which wants to know how its backend fares."""

    def happened(self, event: EventType, /, **data: object) -> None: ...

    def changed(self) -> None:
        """The state is another one, whether or not that is worth an event."""
        ...

    def failed(self, reason: str, attempt: int) -> None:
        """A try failed; there may be more."""
        ...

    def lost(self, reason: str) -> JsonObject:
        """The link is gone: reject what waits on it. Returns what that invalidated."""
        ...


class ConnectionEvents:
    """Knows for each turn of a connection which events belong to it; those of a process are its own."""

    def __init__(self, name: str, observer: Observer, *, is_process: bool) -> None:
        self._name, self._observer, self._is_process = name, observer, is_process

    def connected(self, process: JsonObject | None, capabilities: JsonObject) -> None:
        if process is not None:
            self._tell(EventType.PROCESS_STARTED, pid=process["pid"])
        self._tell(EventType.SERVER_CONNECTED, capabilities=capabilities)

    def reconnected(self, process: JsonObject | None, *, tries: int, is_same: bool, invalidated: JsonObject) -> None:
        """After a loss, which `invalidated` something; `is_same` if the backend still knows us."""
        if process is not None:
            self._tell(EventType.RESTARTED, pid=process["pid"])
        kind = "blip" if is_same else "restart"
        self._tell(EventType.SERVER_RECONNECTED, attemptsTaken=tries, kind=kind, invalidated=invalidated)

    def lost(self, reason: str, process: JsonObject | None) -> JsonObject:
        """Returns what the loss invalidated."""
        if process is not None:
            self._tell(EventType.PROCESS_CRASHED, **_end_of(process))
        return self.cut_off(reason)

    def cut_off(self, reason: str) -> JsonObject:
        """A loss that is no crash. Returns what it invalidated."""
        self._tell(EventType.SERVER_DISCONNECTED, reason=reason)
        return self._observer.lost(reason)

    def retrying(self, retry: Retry) -> None:
        delay = round(retry.delay * 1000)
        if self._is_process:
            self._tell(EventType.RESTARTING, attempt=retry.attempt, delayMs=delay)
        else:
            self._tell(EventType.SERVER_RECONNECTING, attempt=retry.attempt, nextRetryMs=delay)

    def gave_up(self, reason: str, attempts: int) -> None:
        if self._is_process and attempts:
            self._tell(EventType.RESTART_FAILED, attempts=attempts, error=reason)

    def stopped(self, process: JsonObject | None) -> None:
        """On purpose."""
        if process is not None:
            self._tell(EventType.PROCESS_STOPPED, **_end_of(process))

    def _tell(self, event: EventType, **data: object) -> None:
        self._observer.happened(event, name=self._name, **data)


def _end_of(process: JsonObject) -> JsonObject:
    return {key: process[key] for key in ("pid", "exitCode", "signal", "stderrTail") if key in process}
