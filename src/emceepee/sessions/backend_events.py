"""Pass messages of one backend to the session."""

import asyncio
from typing import Protocol

from emceepee.backends.backend_task import BackendTask
from emceepee.clock import Clock
from emceepee.sessions.call import Call
from emceepee.sessions.events.buffers import LogSource, ServerBuffers
from emceepee.wire.json_types import JsonObject


class BackendEvents(Protocol):
    """The parts of a session that a listener needs."""

    clock: Clock

    def buffers(self, server: str) -> ServerBuffers: ...
    def handle_notification(self, server: str, method: str, params: JsonObject) -> None: ...
    def handle_progress(self, call: Call, params: JsonObject) -> None: ...
    def handle_backend_task(self, call: Call, task: BackendTask) -> None: ...
    async def answer_backend_request(
        self, server: str, method: str, params: JsonObject, call: Call | None, *, seconds: float | None
    ) -> JsonObject: ...


class BackendListener:
    """The listener for the links of one connection."""

    def __init__(self, session: BackendEvents, backend: str) -> None:
        self._session, self._backend = session, backend

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        call = origin if isinstance(origin, Call) else None
        return await self._session.answer_backend_request(self._backend, method, params, call, seconds=seconds)

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        match method:
            case "notifications/progress":
                if isinstance(origin, Call):
                    self._session.handle_progress(origin, params)
            case "notifications/message":
                span = origin.span if isinstance(origin, Call) else None
                number = None if span is None else span.number
                self._session.buffers(self._backend).add_log_message(params, self._session.clock.now(), number)
            case _:
                self._session.handle_notification(self._backend, method, params)

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        return None  # the connection handles requests that outlive its links

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        if isinstance(origin, Call):
            self._session.handle_backend_task(origin, task)

    def handle_output(self, line: str, source: str) -> None:
        self._session.buffers(self._backend).add_output(line, LogSource(source), self._session.clock.now())
