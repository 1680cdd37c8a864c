"""What every transport tells the tools about who calls."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from emceepee.backends.spec import BackendSpec, ServerEntry
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.guard.identity import CallerIdentity
from emceepee.json_rpc import Notification, Request, RequestId, cancelled_id, is_client_timeout, progress_token
from emceepee.json_types import JsonObject
from emceepee.sessions.call import Call
from emceepee.sessions.directory import KeyKind, SessionDirectory, SessionKey
from emceepee.sessions.session import Session
from emceepee.state.events import Taken
from emceepee.tools.declaration import Caller
from emceepee.web.asgi import Connection

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
LONGEST_LABEL = 100
MayAdd = Callable[[ServerEntry], Awaitable[BackendSpec]]


def client_info(params: object) -> JsonObject:
    """What a caller says of itself in the params of `initialize` or of any 2026-07-28 request; {} if nothing."""
    if not isinstance(params, dict):
        return {}
    meta = params.get("_meta")
    info = params.get("clientInfo") or (meta.get(CLIENT_INFO) if isinstance(meta, dict) else None)
    return info if isinstance(info, dict) else {}


def client_label(params: object) -> str | None:
    """What a caller calls itself, name and version."""
    info = client_info(params)
    said = [word for word in (info.get("name"), info.get("version")) if isinstance(word, str)]
    printable = "".join(letter for letter in " ".join(said)[:LONGEST_LABEL] if letter.isprintable())
    return printable.strip() or None


class SessionHandles:
    """Sessions of one principal that a call names: opened, found by their handle, closed by handle or name."""

    def __init__(self, directory: SessionDirectory, principal: str, params: object = None) -> None:
        self._directory, self._principal, self._params = directory, principal, params
        self.idle_ms = directory.kept_ms

    async def open(self) -> str:
        key, session = await self._directory.open_handle(self._principal)
        session.label = client_label(self._params)
        return key.value

    async def close(self, session: str) -> None:
        """Raises: EmceepeeError."""
        for kind in (KeyKind.HANDLE, KeyKind.NAME):
            if await self._directory.close(SessionKey(self._principal, kind, session)):
                return
        raise _ended(session)

    def find(self, handle: str) -> Session:
        """Raises: EmceepeeError."""
        session = self._directory.use(SessionKey(self._principal, KeyKind.HANDLE, handle))
        if session is None:
            raise _ended(handle)
        return session


def _ended(handle: object) -> EmceepeeError:
    shown = str(handle)[:12]
    return EmceepeeError(
        f'The session "{shown}…" is not known: it has ended, or was never yours. Call open_session and use the handle '
        "it returns.",
        code=ErrorCode.SESSION_NOT_FOUND,
    )


@dataclass(frozen=True, slots=True)
class AdmittedRequest:
    """Someone who was let in, and what it may do here."""

    identity: CallerIdentity
    session_handles: SessionHandles
    may_add: MayAdd
    connection: Connection


class ResponseChannel(Protocol):
    """The exchange that a request came by."""

    @property
    def is_gone(self) -> bool: ...

    def say(self, message: JsonObject) -> None: ...

    def hang_up(self) -> None: ...


@dataclass(slots=True)
class RunningRequest:
    """A request that is being served, and the call to a backend that it began, if it began one."""

    task: "asyncio.Task[Any] | None" = field(default=None)  # what serves it
    session: Session | None = field(default=None)
    call: Call | None = field(default=None)
    taken: tuple[Session, Taken] | None = field(default=None)  # the events that its reply carries
    is_abandoned: bool = field(default=False)

    def record_call(self, session: Session, call: Call) -> None:
        self.session, self.call = session, call

    def record_events(self, session: Session, taken: Taken) -> None:
        if taken.numbers or taken.dropped:
            self.taken = session, taken

    @property
    def has_more_than_words(self) -> bool:
        """Whether something would be lost with its reply."""
        return self.call is not None or self.taken is not None

    def promote(self) -> bool:
        """Let it go on as a task; False if there is none."""
        if self.session is None or self.call is None:
            return False
        self.session.calls.promote(self.call)
        return True

    def keep(self) -> None:
        """Its answer reached nobody: keep it as a finished task. The events that it carried come again."""
        if self.taken is not None:
            (session, taken), self.taken = self.taken, None
            session.activity.take_back(taken)
        if self.session is not None and self.call is not None:
            self.session.calls.keep_undelivered(self.call)

    def cancel(self) -> None:
        """End the request, and its call with it, also if that is becoming a task in this very moment."""
        if self.task is not None and not self.task.done() and not self.is_abandoned:
            if self.session is not None and self.call is not None:
                self.session.calls.cancel(self.call)
            self.task.cancel()

    def abandon(self) -> None:
        """End the request, which nobody waits for any more, but not its call."""
        if self.is_abandoned:
            return
        self.is_abandoned = True  # from now on the call is the session's: a second cancellation does not mean it
        # One turn later: a request that came in the same moment has begun its call by then.
        asyncio.get_running_loop().call_soon(self._leave)

    def _leave(self) -> None:
        if self.task is not None and not self.task.done():
            self.promote()
            self.keep()  # the outcome may have come a moment ago
            self.task.cancel()


def cancel_request(notice: Notification, running: Mapping[RequestId, RunningRequest]) -> None:
    """Do what a `notifications/cancelled` asks for, if its request is still being served."""
    key = cancelled_id(notice)
    running_request = None if key is None else running.get(key)
    if running_request is None:
        return
    if is_client_timeout(notice):
        running_request.abandon()
    else:
        running_request.cancel()


def caller_for(
    request: Request,
    channel: ResponseChannel,
    admitted: AdmittedRequest,
    running_request: RunningRequest,
    follow_events: Callable[[bool], None] | None = None,
) -> Caller:
    """The facts of one request."""
    token = progress_token(request.params)

    def tell(params: JsonObject) -> None:
        channel.say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params | {"progressToken": token}})

    return Caller(
        on_progress=None if token is None else tell,
        say=channel.say,
        hang_up=channel.hang_up,
        follow_events=follow_events,
        on_call=running_request.record_call,
        on_events=running_request.record_events,
        is_gone=lambda: channel.is_gone,
        session_handles=admitted.session_handles,
        is_remote=admitted.identity.is_remote,
        may_add=admitted.may_add,
    )
