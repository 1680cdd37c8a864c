"""One HTTP connection of a client, to tell apart the conversations of a shared session."""

import secrets
from typing import Protocol

NAME_BYTES = 8


class Carrier(Protocol):
    """The open connection itself."""

    def is_idle(self) -> bool:
        """Return whether it could carry the next request."""
        ...


class ClientLine:
    """Clients number their requests. The first number on a connection shows which older connection it continues."""

    __slots__ = ("carrier", "first_id", "name")

    def __init__(self, carrier: Carrier | None = None, name: str = "", first_id: int | None = None) -> None:
        self.carrier = carrier  # None if it is closed or belongs to another replica
        self.name = name or secrets.token_hex(NAME_BYTES)
        self.first_id = first_id

    def __repr__(self) -> str:
        state = "gone" if self.carrier is None else "idle" if self.carrier.is_idle() else "busy"
        return f"<ClientLine {self.name} from={self.first_id} {state}>"

    @property
    def is_idle(self) -> bool:
        return self.carrier is not None and self.carrier.is_idle()

    def note(self, request_id: object) -> None:
        """Store the number of the first request on this connection."""
        if self.first_id is None and type(request_id) is int:
            self.first_id = request_id

    # For another replica, which serves requests from this connection.

    def to_bytes(self) -> bytes:
        return f"{self.name} {'' if self.first_id is None else self.first_id}".encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "ClientLine | None":
        """Return the line that a replica described, or None if the data does not describe one."""
        name, _, first = data.decode("latin-1").partition(" ")
        try:
            return cls(None, name, int(first) if first else None) if name else None
        except ValueError:
            return None
