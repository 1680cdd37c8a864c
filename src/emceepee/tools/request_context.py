"""One request of a caller: who sent it, how to reach them while it runs, and what would be lost with its answer."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from emceepee.backends.spec import BackendSpec, ServerEntry
from emceepee.errors import EmceepeeError, ErrorCode, Unsupported
from emceepee.sessions.asker import Asker
from emceepee.sessions.call import Call
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.session_storage import SessionElsewhere
from emceepee.sessions.session import Session
from emceepee.state.events import DeliveryReceipt
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.surface import Surface, call_to
from emceepee.telemetry.journal import Journal, SpanOwner
from emceepee.wire.json_rpc import (
    Request,
    client_info,
    client_label,
    notification_message,
    progress_token,
    said_version,
    trace_context,
)
from emceepee.wire.json_types import JsonObject

LONGEST_AGENT = 200  # bytes of a User-Agent that tell clients apart


class ResponseChannel(Protocol):
    """The transport's way to reach the client that waits for the answer to one request."""

    @property
    def is_gone(self) -> bool:
        """Whether nobody would read a reply."""
        ...

    def send(self, message: JsonObject) -> None:
        """A notification that belongs to the request, before its answer."""
        ...


class _NoChannel:
    """Of a request that has its response, or that nobody waits for."""

    is_gone = False

    def send(self, message: JsonObject) -> None: ...


NO_CHANNEL: ResponseChannel = _NoChannel()


class SpokenEra(Protocol):
    """The protocol era of a request's sender."""

    @property
    def version(self) -> str: ...

    @property
    def client_name(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class InputRound:
    """The answers in a call that was sent again, because its result asked something."""

    task_id: str  # the task that the call has become
    responses: JsonObject = field(repr=False)
    asked_at: float = 0.0  # seconds since the epoch, when that result was made


class ServerPolicy(Protocol):
    """Which servers a caller may add."""

    async def admit(self, entry: ServerEntry, *, is_remote: bool) -> BackendSpec:
        """Raises: NotAllowed, InvalidArguments."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class RequestContext:
    """The server keeps one per request that it serves; a tool gets it to learn of its caller, and to speak to it."""

    request: Request = Request(0, "tools/call", None)
    session: Session | None = None  # the caller's own; a `session` argument may name another
    channel: ResponseChannel = NO_CHANNEL
    principal: str = ""
    is_remote: bool = False  # from another machine, or as good as
    directory: SessionDirectory | None = None  # None: the connection is the session, and there are no others
    policy: ServerPolicy | None = None  # None: any server may be added
    follow_events: Callable[[bool], None] | None = None  # True: notify this connection of each event at once
    asker: Asker | None = None  # its connection, if that takes questions by the protocol's own means
    surface: Surface | None = None  # that the caller asked for; None: as the operator decided
    headers: Mapping[bytes, bytes] | None = None  # of HTTP; None: it came by a pipe
    conversation: object | None = None  # of several in a session that names none
    era: SpokenEra | None = field(default=None, init=False)
    task: "asyncio.Task[Any] | None" = field(default=None, init=False)  # what serves it; None before and after
    call: tuple[Session, Call] | None = field(default=None, init=False)  # the call to a backend that it began
    receipt: tuple[Session, DeliveryReceipt] | None = field(
        default=None, init=False
    )  # the events that its reply carries
    answers: InputRound | None = field(default=None, init=False)  # it is a call that asked, sent again
    is_abandoned: bool = field(default=False, init=False)  # the client has timed out
    is_cancelled: bool = field(default=False, init=False)  # a cancellation ended it, by the caller or by emceepee
    is_broken_off: bool = field(default=False, init=False)  # and that was not its caller
    _ended: asyncio.Event | None = field(default=None, init=False)

    def __repr__(self) -> str:
        running = "idle" if self.task is None else "running"
        state = "cancelled" if self.is_cancelled else "abandoned" if self.is_abandoned else running
        call = "" if self.call is None else f" {self.call[1]!r}"
        return f"<RequestContext {self.request.request_id!r} {self.request.method} {state}{call}>"

    # For tools.

    @property
    def is_gone(self) -> bool:
        return self.channel.is_gone

    @property
    def protocol_version(self) -> str | None:
        return said_version(self.request.params) or (None if self.era is None else self.era.version)

    @property
    def client_name(self) -> str | None:
        """The client's own name, if it sent one."""
        name = client_info(self.request.params).get("name")
        if isinstance(name, str):
            return name
        return None if self.era is None else self.era.client_name

    @property
    def client(self) -> object:
        """The name and version of the caller's program, as it sent them."""
        agent = b"" if self.headers is None else self.headers.get(b"user-agent", b"")
        return client_label(self.request.params), agent[:LONGEST_AGENT]

    @property
    def client_key(self) -> object:
        """A key that distinguishes the caller from others in the same session, as far as the request allows."""
        return self.conversation or self.client

    @property
    def on_progress(self) -> Callable[[JsonObject], None] | None:
        """None if the caller did not ask for progress."""
        return None if progress_token(self.request.params) is None else self._send_progress

    def _send_progress(self, params: JsonObject) -> None:
        told = params | {"progressToken": progress_token(self.request.params)}
        self.channel.send(notification_message("notifications/progress", told))

    def with_trace(self, params: JsonObject) -> JsonObject:
        """The params of a request to a server, with what the caller said of its trace."""
        trace = trace_context(self.request.params)
        return params if trace is None else {**params, "_meta": trace}

    def record_call(self, session: Session, call: Call) -> None:
        self.call = session, call
        call.asker = self.asker if session is self.session else None
        if self.conversation is not None:
            call.conversation = self.conversation

    def record_events(self, session: Session, receipt: DeliveryReceipt) -> None:
        """They come again if nobody reads the reply."""
        if receipt:
            self.receipt = session, receipt

    async def admit_server(self, entry: ServerEntry) -> BackendSpec:
        """The server as this caller may add it. Raises: NotAllowed, InvalidArguments."""
        return entry.spec() if self.policy is None else await self.policy.admit(entry, is_remote=self.is_remote)

    # Sessions that the caller names: opened, found by their handle, closed by handle or name.

    async def open_session(self) -> tuple[str, int]:
        """Its handle, and for how many milliseconds it is kept unused. Raises: EmceepeeError."""
        directory = self._require_directory()
        key, session = await directory.open_handle(self.principal)
        session.update_profile(label=client_label(self.request.params))
        await session.unsaved.save()
        return key.value, directory.kept_ms

    async def close_session(self, session: str) -> None:
        """Raises: EmceepeeError."""
        directory = self._require_directory()
        for kind in (KeyKind.HANDLE, KeyKind.NAME):
            with _said_if_elsewhere():
                if await directory.close(SessionKey(self.principal, kind, session)):
                    return
        raise _unknown_session(session)

    async def find_session(self, handle: str) -> Session:
        """Raises: EmceepeeError."""
        with _said_if_elsewhere():
            session = await self._require_directory().use(SessionKey(self.principal, KeyKind.HANDLE, handle))
        if session is None:
            raise _unknown_session(handle)
        return session

    def _require_directory(self) -> SessionDirectory:
        if self.directory is None:
            raise Unsupported("This connection has one session, and no others can be opened on it.")
        return self.directory

    # For the server.

    def unkept_journal(self) -> Journal | None:
        """For a request that is in no journal of a session, so that observers see it; None if there are none."""
        if self.session is not None:
            return self.session.journal.unkept()
        unowned = None if self.directory is None else self.directory.unowned_requests
        return None if unowned is None else unowned.unkept(SpanOwner("", self.principal))

    @property
    def ended(self) -> asyncio.Event:
        """Set when one that goes on as long as its caller listens is to end, with its result."""
        if self._ended is None:
            self._ended = asyncio.Event()
        return self._ended

    def close(self) -> None:
        """There is a response: nothing can cancel the request any more, and nothing can precede its answer."""
        self.task, self.channel = None, NO_CHANNEL  # which may refer to this context: no cycle is left to the collector

    @property
    def has_more_than_words(self) -> bool:
        """Whether something would be lost with its reply."""
        return self.call is not None or self.receipt is not None

    def promote(self) -> bool:
        """Promote the call of this request to a task; False if it began none."""
        if self.call is None:
            return False
        session, call = self.call
        session.calls.promote(call)
        return True

    def confirm(self) -> None:
        """Its answer was written: the events that it carried are delivered, unless `keep` says otherwise."""
        if self.receipt is not None:
            session, receipt = self.receipt
            session.activity.confirm(receipt)

    def redeliver_events(self) -> None:
        """Its answer will not be written, or was not read: the events in it come again."""
        if self.receipt is not None:
            (session, receipt), self.receipt = self.receipt, None
            session.activity.redeliver(receipt)

    def keep(self) -> None:
        """Its answer reached nobody: keep it as a finished task. The events that it carried come again."""
        self.redeliver_events()
        if self.call is not None:
            session, call = self.call
            session.calls.store_undelivered(call)

    def cancel(self) -> None:
        """End the request, and its call with it, also if that is becoming a task in this very moment."""
        if self.task is not None and not self.task.done() and not self.is_abandoned:
            if self.call is not None:
                session, call = self.call
                session.calls.cancel(call)
            self.task.cancel()

    def break_off(self) -> None:
        """End it though its caller may wait for it still: what it is served by ends."""
        self.is_broken_off = self.task is not None and not self.task.cancelling()
        self.cancel()

    def detach(self) -> None:
        """Its connection is gone: a call to a backend goes on as a task, anything else ends."""
        if self.answers is not None and self.task is not None:
            self.task.cancel()  # its call is a task already
        elif not self.promote():
            self.cancel()

    def abandon(self) -> None:
        """The client timed out: end the request, but not its call, of which nobody said that it should end."""
        if self.is_abandoned:
            return
        self.is_abandoned = True  # from now on the call is the session's: a second cancellation does not mean it
        # One turn later: a request that came in the same moment has begun its call by then.
        asyncio.get_running_loop().call_soon(self._end_abandoned)

    def _end_abandoned(self) -> None:
        if self.task is not None and not self.task.done():
            self.promote()
            self.keep()  # the outcome may have arrived since this began
            self.task.cancel()


@contextmanager
def _said_if_elsewhere() -> Iterator[None]:
    """Requests of 2026-07-28 were passed on before. Raises: Unsupported."""
    try:
        yield
    except SessionElsewhere:
        raise Unsupported(
            "That session is at another replica. Only requests of 2026-07-28 are passed on by a handle."
        ) from None


def _unknown_session(handle: object) -> EmceepeeError:
    shown = str(handle)[:12]
    return EmceepeeError(
        f'The session "{shown}…" is not known: it has ended, or was never yours. Call {call_to("open_session")} and '
        "use the handle it returns.",
        code=ErrorCode.SESSION_NOT_FOUND,
    )
