"""One request of a caller: its sender, the channel to the sender, and the call and events that its answer carries."""

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

LONGEST_AGENT = 200  # bytes of a User-Agent: enough to distinguish clients


class ResponseChannel(Protocol):
    """The transport's way to reach the client that waits for the answer to one request."""

    @property
    def is_gone(self) -> bool:
        """Whether the client has disconnected, so that a reply would be lost."""
        ...

    def send(self, message: JsonObject) -> None:
        """Send a notification that belongs to the request, before its answer."""
        ...


class _NoChannel:
    """The channel of a request that was answered or that no client waits for. It drops messages."""

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
    """The answers in a repeated call, whose earlier result asked questions."""

    task_id: str  # the task that the call has become
    responses: JsonObject = field(repr=False)
    asked_at: float = 0.0  # when the earlier result was created, in seconds since the epoch


class ServerPolicy(Protocol):
    """Decides which servers a caller may add."""

    async def admit(self, entry: ServerEntry, *, is_remote: bool) -> BackendSpec:
        """Raises: NotAllowed, InvalidArguments."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class RequestContext:
    """The context of one request in service. A tool uses it to identify its caller and to send messages to it."""

    request: Request = Request(0, "tools/call", None)
    session: Session | None = None  # the caller's own; a `session` argument may name another
    channel: ResponseChannel = NO_CHANNEL
    principal: str = ""
    is_remote: bool = False  # from another machine, or treated like that
    directory: SessionDirectory | None = None  # None: the connection is the session, and there are no others
    policy: ServerPolicy | None = None  # None: any server may be added
    follow_events: Callable[[bool], None] | None = None  # True: notify this connection of each event at once
    asker: Asker | None = None  # the caller's connection, if its client supports native questions
    surface: Surface | None = None  # requested by the caller; None: the operator's default
    headers: Mapping[bytes, bytes] | None = None  # of an HTTP request; None for a pipe
    conversation: object | None = None  # the caller's conversation, if several share the session
    era: SpokenEra | None = field(default=None, init=False)
    task: "asyncio.Task[Any] | None" = field(default=None, init=False)  # serves the request; None before and after that
    call: tuple[Session, Call] | None = field(default=None, init=False)  # the backend call that this request started
    receipt: tuple[Session, DeliveryReceipt] | None = field(default=None, init=False)  # of the events in its reply
    answers: InputRound | None = field(default=None, init=False)  # set if a repeated call answers questions
    is_abandoned: bool = field(default=False, init=False)  # the client has timed out
    is_cancelled: bool = field(default=False, init=False)  # the caller or emceepee cancelled it
    is_broken_off: bool = field(default=False, init=False)  # emceepee cancelled it, not the caller
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
        """Return the name that the client sent, or None."""
        name = client_info(self.request.params).get("name")
        if isinstance(name, str):
            return name
        return None if self.era is None else self.era.client_name

    @property
    def client(self) -> object:
        """Return the name and version of the caller's program, as it sent them."""
        agent = b"" if self.headers is None else self.headers.get(b"user-agent", b"")
        return client_label(self.request.params), agent[:LONGEST_AGENT]

    @property
    def client_key(self) -> object:
        """Return a key that distinguishes the caller from others in the same session, as far as the request allows."""
        return self.conversation or self.client

    @property
    def on_progress(self) -> Callable[[JsonObject], None] | None:
        """Return a function that sends progress, or None if the caller did not request progress."""
        return None if progress_token(self.request.params) is None else self._send_progress

    def _send_progress(self, params: JsonObject) -> None:
        told = params | {"progressToken": progress_token(self.request.params)}
        self.channel.send(notification_message("notifications/progress", told))

    def with_trace(self, params: JsonObject) -> JsonObject:
        """Return the params of a request to a server, with the caller's trace context."""
        trace = trace_context(self.request.params)
        return params if trace is None else {**params, "_meta": trace}

    def record_call(self, session: Session, call: Call) -> None:
        self.call = session, call
        call.asker = self.asker if session is self.session else None
        if self.conversation is not None:
            call.conversation = self.conversation

    def record_events(self, session: Session, receipt: DeliveryReceipt) -> None:
        """Record the events in the reply, to redeliver them if the client does not read it."""
        if receipt:
            self.receipt = session, receipt

    async def admit_server(self, entry: ServerEntry) -> BackendSpec:
        """Return the server's specification with this caller's restrictions. Raises: NotAllowed, InvalidArguments."""
        return entry.spec() if self.policy is None else await self.policy.admit(entry, is_remote=self.is_remote)

    # Sessions that the caller names: opened, found by their handle, closed by handle or name.

    async def open_session(self) -> tuple[str, int]:
        """Open a session. Return its handle, and how many milliseconds it stays without use. Raises: EmceepeeError."""
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
            raise Unsupported("This connection has one session, and it cannot open others.")
        return self.directory

    # For the server.

    def unkept_journal(self) -> Journal | None:
        """Return a journal that only passes requests to observers and stores none. None if there are no observers."""
        if self.session is not None:
            return self.session.journal.unkept()
        unowned = None if self.directory is None else self.directory.unowned_requests
        return None if unowned is None else unowned.unkept(SpanOwner("", self.principal))

    @property
    def ended(self) -> asyncio.Event:
        """An event that is set when a long-lived request, such as a listen, must end and return its result."""
        if self._ended is None:
            self._ended = asyncio.Event()
        return self._ended

    def close(self) -> None:
        """Record that the response exists: from now on, the request cannot be cancelled or send notifications."""
        self.task, self.channel = None, NO_CHANNEL  # both may refer to this context: break the reference cycles

    @property
    def has_more_than_words(self) -> bool:
        """Whether a lost reply would lose a call's result or events."""
        return self.call is not None or self.receipt is not None

    def promote(self) -> bool:
        """Promote the call of this request to a task. Return False if the request started no call."""
        if self.call is None:
            return False
        session, call = self.call
        session.calls.promote(call)
        return True

    def confirm(self) -> None:
        """Record that the answer was written: its events count as delivered until `keep` reports that it was unread."""
        if self.receipt is not None:
            session, receipt = self.receipt
            session.activity.confirm(receipt)

    def redeliver_events(self) -> None:
        """Redeliver the events of an answer that will not be written or was not read."""
        if self.receipt is not None:
            (session, receipt), self.receipt = self.receipt, None
            session.activity.redeliver(receipt)

    def keep(self) -> None:
        """Store an undelivered answer as a finished task, and redeliver its events."""
        self.redeliver_events()
        if self.call is not None:
            session, call = self.call
            session.calls.store_undelivered(call)

    def cancel(self) -> None:
        """Cancel the request and its call, even if the call is just becoming a task (race)."""
        if self.task is not None and not self.task.done() and not self.is_abandoned:
            if self.call is not None:
                session, call = self.call
                session.calls.cancel(call)
            self.task.cancel()

    def break_off(self) -> None:
        """Cancel the request although its caller may still wait, because its session or the process ends."""
        self.is_broken_off = self.task is not None and not self.task.cancelling()
        self.cancel()

    def detach(self) -> None:
        """Handle the loss of the connection: promote a backend call to a task, and cancel any other request."""
        if self.answers is not None and self.task is not None:
            self.task.cancel()  # its call is a task already
        elif not self.promote():
            self.cancel()

    def abandon(self) -> None:
        """Handle the client's timeout: end the request, but not its call, because nobody cancelled the call."""
        if self.is_abandoned:
            return
        self.is_abandoned = True  # the session owns the call from now on: a second cancellation does not affect it
        # Wait one turn of the loop, so that a request that arrived in the same turn has started its call.
        asyncio.get_running_loop().call_soon(self._end_abandoned)

    def _end_abandoned(self) -> None:
        if self.task is not None and not self.task.done():
            self.promote()
            self.keep()  # race: the outcome may have arrived since `abandon`
            self.task.cancel()


@contextmanager
def _said_if_elsewhere() -> Iterator[None]:
    """Reject a session of another replica: only requests of 2026-07-28 are forwarded. Raises: Unsupported."""
    try:
        yield
    except SessionElsewhere:
        raise Unsupported(
            "Another replica holds that session. Only requests of 2026-07-28 are forwarded by handle."
        ) from None


def _unknown_session(handle: object) -> EmceepeeError:
    shown = str(handle)[:12]
    return EmceepeeError(
        f'The session "{shown}…" is unknown: it has ended, or was never yours. Call {call_to("open_session")} and '
        "use the handle it returns.",
        code=ErrorCode.SESSION_NOT_FOUND,
    )
