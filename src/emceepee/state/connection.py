"""The life of one connection to a backend, as a table and a record."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from emceepee.state.machine import Machine, Move


class ConnectionStatus(StrEnum):
    """What `list_servers` calls a connection."""

    NOT_CONNECTED = "not_connected"
    """Known, but not needed so far, or stopped because nobody used it."""
    CONNECTING = "connecting"
    """Being opened; who needs it waits."""
    CONNECTED = "connected"
    """Ready for calls."""
    RECONNECTING = "reconnecting"
    """Lost or never reached; it is tried again by itself, and at once when a call needs it."""
    DISCONNECTED = "disconnected"
    """Was connected, is no longer, and is not tried again by itself."""
    ERROR = "error"
    """Could not be opened, or crashed too often."""


_S = ConnectionStatus
CONNECTION = Machine(
    "backend_connection_states",
    "A session's connection to one backend",
    begins=(_S.NOT_CONNECTED, "The server is configured"),
    moves=[
        Move(_S.NOT_CONNECTED, _S.CONNECTING, "The session needs it"),
        Move(_S.CONNECTING, _S.CONNECTED, "The server answers the handshake"),
        Move(_S.CONNECTING, _S.RECONNECTING, "It fails, and is worth another try"),
        Move(_S.CONNECTING, _S.ERROR, "It fails, and is not"),
        Move(_S.CONNECTING, _S.DISCONNECTED, "It is closed meanwhile"),
        Move(_S.CONNECTED, _S.RECONNECTING, "The process exits or the line is lost"),
        Move(_S.CONNECTED, _S.DISCONNECTED, "It is lost and not to be restarted, or is closed"),
        Move(_S.CONNECTED, _S.NOT_CONNECTED, "Nobody used it for long"),
        Move(_S.CONNECTED, _S.ERROR, "It crashes, and the restarts are used up"),
        Move(_S.RECONNECTING, _S.RECONNECTING, "Another try fails"),
        Move(_S.RECONNECTING, _S.CONNECTED, "The server answers the handshake"),
        Move(_S.RECONNECTING, _S.ERROR, "The restarts are used up"),
        Move(_S.RECONNECTING, _S.DISCONNECTED, "It is closed"),
        Move(_S.DISCONNECTED, _S.CONNECTING, "reconnect_server"),
        Move(_S.DISCONNECTED, _S.NOT_CONNECTED, "The session sleeps"),
        Move(_S.ERROR, _S.CONNECTING, "reconnect_server"),
    ],
    ends="The server is removed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionState:
    """Where a connection stands, since when, why, and when it is tried next."""

    status: ConnectionStatus = ConnectionStatus.NOT_CONNECTED
    connected_at: datetime | None = None
    reason: str | None = None
    attempt: int = 0
    retry_at: datetime | None = None

    def connecting(self) -> "ConnectionState":
        return self._moved(ConnectionStatus.CONNECTING)

    def connected(self, at: datetime) -> "ConnectionState":
        return replace(self._moved(ConnectionStatus.CONNECTED), connected_at=at, reason=None)

    def reconnecting(self, reason: str, *, attempt: int, retry_at: datetime) -> "ConnectionState":
        moved = self._moved(ConnectionStatus.RECONNECTING)
        return replace(moved, reason=reason, attempt=attempt, retry_at=retry_at)

    def failed(self, reason: str) -> "ConnectionState":
        return replace(self._moved(ConnectionStatus.ERROR), reason=reason)

    def disconnected(self, reason: str) -> "ConnectionState":
        return replace(self._moved(ConnectionStatus.DISCONNECTED), reason=reason)

    def resting(self) -> "ConnectionState":
        """Closed because nobody used it; the next use opens it again."""
        return replace(self._moved(ConnectionStatus.NOT_CONNECTED), reason=None)

    def _moved(self, target: ConnectionStatus) -> "ConnectionState":
        CONNECTION.check(self.status, target)
        return replace(self, status=target, connected_at=None, attempt=0, retry_at=None)
