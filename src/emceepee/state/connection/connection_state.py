"""The life of one connection to a backend: its public status, its internal states, and how a link ends."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from emceepee.state.connection.retry import Retry, RetryCount
from emceepee.state.machine import Machine, Move


class ConnectionStatus(StrEnum):
    """The status of a connection in `list_servers`."""

    NOT_CONNECTED = "not_connected"
    """Not used yet, or stopped because it was idle."""
    CONNECTING = "connecting"
    """emceepee opens the connection, and calls wait for it."""
    CONNECTED = "connected"
    """Ready for calls."""
    RECONNECTING = "reconnecting"
    """The connection was lost or failed. emceepee retries it after a delay, and at once if a call needs it."""
    AUTHORIZING = "authorizing"
    """The server requires a login. A person was asked to log in, and emceepee connects after that."""
    DISCONNECTED = "disconnected"
    """The connection was lost or closed, and emceepee does not retry it."""
    ERROR = "error"
    """The connection failed, the server crashed too often, or its configuration has a mistake."""


_S = ConnectionStatus
CONNECTION = Machine(
    "backend_connection_states",
    "A session's connection to one backend",
    begins=(_S.NOT_CONNECTED, "The server is configured"),
    moves=[
        Move(_S.NOT_CONNECTED, _S.CONNECTING, "The session needs it"),
        Move(_S.CONNECTING, _S.CONNECTED, "The server answers the handshake"),
        Move(_S.CONNECTING, _S.RECONNECTING, "It fails, and a retry may succeed"),
        Move(_S.CONNECTING, _S.ERROR, "It fails, and a retry is useless"),
        Move(_S.CONNECTING, _S.NOT_CONNECTED, "The session sleeps"),
        Move(_S.CONNECTING, _S.AUTHORIZING, "The server requires a login"),
        Move(_S.RECONNECTING, _S.AUTHORIZING, "The server requires a login"),
        Move(_S.AUTHORIZING, _S.CONNECTING, "The login succeeds, or reconnect_server"),
        Move(_S.AUTHORIZING, _S.ERROR, "The login fails or is declined"),
        Move(_S.AUTHORIZING, _S.NOT_CONNECTED, "The session sleeps"),
        Move(_S.CONNECTED, _S.RECONNECTING, "The process exits or the link is lost"),
        Move(_S.CONNECTED, _S.CONNECTING, "reconnect_server, or the server needs an earlier protocol version"),
        Move(_S.CONNECTED, _S.DISCONNECTED, "It is lost and must not be restarted, or it is closed"),
        Move(_S.CONNECTED, _S.NOT_CONNECTED, "It is idle for too long, or the session sleeps"),
        Move(_S.CONNECTED, _S.ERROR, "The server crashes, and the restarts are used up"),
        Move(_S.RECONNECTING, _S.RECONNECTING, "Another attempt fails"),
        Move(_S.RECONNECTING, _S.CONNECTED, "The server answers the handshake"),
        Move(_S.RECONNECTING, _S.CONNECTING, "reconnect_server"),
        Move(_S.RECONNECTING, _S.NOT_CONNECTED, "The session sleeps"),
        Move(_S.RECONNECTING, _S.ERROR, "The restarts are used up"),
        Move(_S.DISCONNECTED, _S.CONNECTING, "reconnect_server"),
        Move(
            _S.ERROR,
            _S.CONNECTING,
            "reconnect_server, a call after a process limit was reached, or a login after a failed one",
        ),
        *(
            Move(source, _S.DISCONNECTED, "It is closed")
            for source in (_S.NOT_CONNECTED, _S.CONNECTING, _S.RECONNECTING, _S.AUTHORIZING, _S.ERROR)
        ),
    ],
    ends="The server is removed",
)


class LinkEndKind(StrEnum):
    """Why a link ended. It decides what is reported and what happens next."""

    LOST = "lost"
    """The server, its process, or the network connection was lost."""
    UNUSED = "unused"
    """The link was idle. The server may keep emceepee's session for the next link."""
    REPLACED = "replaced"
    """Another link replaces it at once."""
    CLOSED = "closed"
    """The server was removed, or the session is over."""


@dataclass(frozen=True, slots=True)
class LinkEnd:
    """How a link ended; `reason` is for people only and decides nothing."""

    kind: LinkEndKind
    reason: str


CLOSED = LinkEnd(LinkEndKind.CLOSED, "the connection was closed")
UNUSED = LinkEnd(LinkEndKind.UNUSED, "nobody used it for a while; the next call starts it again")
GAVE_WAY = LinkEnd(LinkEndKind.UNUSED, "it was idle, and another server needed room; the next call starts it again")
RECONNECTED = LinkEnd(LinkEndKind.REPLACED, "reconnect_server was called")
OTHER_ERA = LinkEnd(LinkEndKind.REPLACED, "it reconnects with another protocol version")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionView:
    """A connection's state as callers see it."""

    status: ConnectionStatus
    connected_at: datetime | None = None
    reason: str | None = None
    attempt: int = 0
    retry_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionHistory:
    """The data that a connection carries over from one link to the next."""

    retries: RetryCount
    tries: int = 0  # attempts since it was last up, including the current one after a loss
    was_lost: bool = False  # it was up before, and has not reconnected yet

    def fresh(self) -> "ConnectionHistory":
        """Return a new history. It keeps `was_lost`, because an announced loss must be followed by a reconnection."""
        return ConnectionHistory(retries=RetryCount(self.retries.policy), was_lost=self.was_lost)


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """The connection has no link and needs none."""

    history: ConnectionHistory

    @property
    def view(self) -> ConnectionView:
        return ConnectionView(status=ConnectionStatus.NOT_CONNECTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pausing:
    """The last link was lost or could not be opened; the next attempt is at `retry_at`, or when a caller needs it."""

    history: ConnectionHistory
    reason: str
    retry: Retry
    retry_at: datetime

    @property
    def view(self) -> ConnectionView:
        status = ConnectionStatus.RECONNECTING
        return ConnectionView(status=status, reason=self.reason, attempt=self.retry.attempt, retry_at=self.retry_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorizing:
    """The connection has no link until a user logs in. Nothing is tried until then."""

    history: ConnectionHistory
    reason: str

    @property
    def view(self) -> ConnectionView:
        return ConnectionView(status=ConnectionStatus.AUTHORIZING, reason=self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A link is being dialed and initialized. Callers that need it wait."""

    history: ConnectionHistory
    may_retry: bool = True
    after: Pausing | None = None  # None if it is not a retry

    @property
    def view(self) -> ConnectionView:
        return self.after.view if self.after else ConnectionView(status=ConnectionStatus.CONNECTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Up:
    """The connection has a link. If `is_retiring`, the link is replaced as soon as it has no requests in flight."""

    history: ConnectionHistory
    connected_at: datetime
    is_retiring: bool = False
    holds_waiters: bool = False  # new callers wait while the link is retiring, for a limited time

    @property
    def view(self) -> ConnectionView:
        return ConnectionView(status=ConnectionStatus.CONNECTED, connected_at=self.connected_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """No more automatic attempts: only reconnect_server opens it again, or the next call if `tries_on_use`."""

    history: ConnectionHistory
    reason: str
    is_error: bool = True
    tries_on_use: bool = False

    @property
    def view(self) -> ConnectionView:
        status = ConnectionStatus.ERROR if self.is_error else ConnectionStatus.DISCONNECTED
        return ConnectionView(status=status, reason=self.reason)


@dataclass(frozen=True, slots=True)
class Closed:
    """Closed permanently."""

    reason: str

    @property
    def view(self) -> ConnectionView:
        return ConnectionView(status=ConnectionStatus.DISCONNECTED, reason=self.reason)


@dataclass(frozen=True, slots=True)
class Closing:
    """A link is being closed, or an attempt to open one is being abandoned. `then` is the next state.

    It is shown as `then`: a process that takes seconds to end is no longer connected.
    """

    then: "Idle | Pausing | Opening | Down | Closed"

    @property
    def view(self) -> ConnectionView:
        return self.then.view


ConnectionState = Idle | Opening | Authorizing | Up | Pausing | Closing | Down | Closed
