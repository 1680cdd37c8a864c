"""What one backend says, on its way into the session."""

from typing import Protocol

from emceepee.backends.spec import BackendSpec
from emceepee.clock import Clock
from emceepee.json_types import JsonObject
from emceepee.sessions.buffers import LogSource, ServerBuffers
from emceepee.sessions.call import Call
from emceepee.sessions.change_signal import ChangeSignal
from emceepee.state.events import EventType
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")


class BackendEvents(Protocol):
    """What a listener needs of its session."""

    clock: Clock

    change_signal: ChangeSignal

    def buffers(self, server: str) -> ServerBuffers: ...
    def handle_notification(self, server: str, method: str, params: JsonObject) -> None: ...
    def handle_progress(self, call: Call, params: JsonObject) -> None: ...
    def emit_connection_event(self, server: str, event: EventType, data: JsonObject) -> None: ...
    def handle_link_loss(self, server: str, reason: str) -> JsonObject: ...
    async def answer_backend_request(
        self, server: str, method: str, params: JsonObject, call: Call | None, *, seconds: float | None
    ) -> JsonObject: ...


class BackendListener:
    """The upward end of one connection's links."""

    def __init__(self, session: BackendEvents, backend: str) -> None:
        self._session, self._backend = session, backend

    async def asked(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        call = origin if isinstance(origin, Call) else None
        return await self._session.answer_backend_request(self._backend, method, params, call, seconds=seconds)

    def notified(self, method: str, params: JsonObject, origin: object | None) -> None:
        match method:
            case "notifications/progress":
                if isinstance(origin, Call):
                    self._session.handle_progress(origin, params)
            case "notifications/message":
                self._session.buffers(self._backend).add_log_message(params, self._session.clock.now())
            case _:
                self._session.handle_notification(self._backend, method, params)

    def said(self, line: str, source: str) -> None:
        self._session.buffers(self._backend).add_output(line, LogSource(source), self._session.clock.now())


class BackendObserver:
    """What befalls one connection, on its way into the session's events and the log."""

    def __init__(self, session: BackendEvents, spec: BackendSpec) -> None:
        self._session, self._spec = session, spec

    def happened(self, event: EventType, /, **data: object) -> None:
        told = {"name": self._spec.name, **data}
        if event is EventType.SERVER_CONNECTED:
            log.info("server_connected", server=self._spec.name, url=self._spec.target.label)
        elif event is EventType.SERVER_RECONNECTING:
            log.info(
                "server_reconnecting", server=self._spec.name, attempt=data["attempt"], delayMs=data["nextRetryMs"]
            )
        else:
            log.info(str(event), server=self._spec.name, **{key: value for key, value in data.items() if key != "name"})
        self._session.emit_connection_event(self._spec.name, event, told)

    def changed(self) -> None:
        self._session.change_signal.notify()

    def failed(self, reason: str, attempt: int) -> None:
        event = "server_reconnect_failed" if attempt else "server_connect_failed"
        log.warning(event, server=self._spec.name, attempt=attempt, error=reason)

    def lost(self, reason: str) -> JsonObject:
        return self._session.handle_link_loss(self._spec.name, reason)
