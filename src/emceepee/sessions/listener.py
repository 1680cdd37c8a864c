"""What one backend says, on its way into the session's buffers."""

from typing import Protocol

from emceepee.backends.link import RpcError
from emceepee.clock import Clock
from emceepee.json_types import JsonObject
from emceepee.sessions.buffers import LogSource, ServerBuffers
from emceepee.sessions.calls import Call

METHOD_NOT_FOUND = -32601


class Ears(Protocol):
    """What a listener needs of its session."""

    clock: Clock

    def buffers(self, server: str) -> ServerBuffers: ...
    def backend_changed(self, server: str, method: str) -> None: ...


class BackendListener:
    """The upward end of one connection's links."""

    def __init__(self, session: Ears, backend: str) -> None:
        self._session, self._backend = session, backend

    async def asked(self, method: str, params: JsonObject, origin: object | None) -> JsonObject:
        raise RpcError({"code": METHOD_NOT_FOUND, "message": f"emceepee does not serve {method}"})

    def notified(self, method: str, params: JsonObject, origin: object | None) -> None:
        session, now = self._session, self._session.clock.now()
        if method == "notifications/progress":
            if isinstance(origin, Call):
                origin.progressed(params)
            return
        buffers = session.buffers(self._backend)
        if method == "notifications/message":
            buffers.logged(params, now)
            return
        session.backend_changed(self._backend, method)
        buffers.notified(method, params, now)

    def said(self, line: str, source: str) -> None:
        self._session.buffers(self._backend).said(line, LogSource(source), self._session.clock.now())
