"""The key that identifies a session."""

from dataclasses import dataclass
from enum import StrEnum


class KeyKind(StrEnum):
    """How a session is identified."""

    ID = "id"
    """By the protocol's own session id."""
    HANDLE = "handle"
    """By a handle from open_session."""
    NAME = "name"
    """By a name that the user chose in the client's configuration."""
    DEFAULT = "default"
    """By the principal and the client's name only."""
    CONNECTION = "connection"
    """By the protocol's session id of a connection that joined a named session."""


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session key. It includes the principal, so no principal finds another's session."""

    principal: str
    kind: KeyKind
    value: str = ""
