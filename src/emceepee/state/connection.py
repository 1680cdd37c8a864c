"""The life of one connection to a backend, as a table and a record."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from emceepee.state.machine import Machine, Move


class ConnectionStatus(StrEnum):
    """What `list_servers` calls a connection."""

    NOT_CONNECTED = "not_connected"
    """Known, but not needed so far."""
    CONNECTING = "connecting"
    """Being opened; who needs it waits."""
    CONNECTED = "connected"
    """Ready for calls."""
    DISCONNECTED = "disconnected"
    """Was connected, and is no longer."""
    ERROR = "error"
    """Could not be opened."""


_S = ConnectionStatus
CONNECTION = Machine(
    "backend_connection_states",
    "A session's connection to one backend",
    begins=(_S.NOT_CONNECTED, "The server is configured"),
    moves=[
        Move(_S.NOT_CONNECTED, _S.CONNECTING, "The session needs it"),
        Move(_S.CONNECTING, _S.CONNECTED, "The backend answered the handshake"),
        Move(_S.CONNECTING, _S.ERROR, "It failed or took too long"),
        Move(_S.CONNECTED, _S.DISCONNECTED, "The process exited or the line was lost"),
        Move(_S.CONNECTED, _S.CONNECTING, "reconnect_server"),
        Move(_S.DISCONNECTED, _S.CONNECTING, "reconnect_server"),
        Move(_S.ERROR, _S.CONNECTING, "reconnect_server"),
    ],
    ends="The server is removed",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionState:
    """Where a connection stands, since when, and why."""

    status: ConnectionStatus = ConnectionStatus.NOT_CONNECTED
    connected_at: datetime | None = None
    reason: str | None = None

    def connecting(self) -> "ConnectionState":
        return self._move(ConnectionStatus.CONNECTING, connected_at=None)

    def connected(self, at: datetime) -> "ConnectionState":
        return self._move(ConnectionStatus.CONNECTED, connected_at=at, reason=None)

    def failed(self, reason: str) -> "ConnectionState":
        return self._move(ConnectionStatus.ERROR, reason=reason)

    def lost(self, reason: str) -> "ConnectionState":
        return self._move(ConnectionStatus.DISCONNECTED, connected_at=None, reason=reason)

    def _move(
        self, target: ConnectionStatus, *, connected_at: datetime | None = None, reason: str | None = ""
    ) -> "ConnectionState":
        CONNECTION.check(self.status, target)
        kept = self.reason if reason == "" else reason
        return replace(self, status=target, connected_at=connected_at, reason=kept)
