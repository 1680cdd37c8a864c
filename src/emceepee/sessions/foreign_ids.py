"""Explain an unknown id: a client that reconnects for each call uses ids of its previous sessions."""

from emceepee.clock import milliseconds
from emceepee.ids import milliseconds_of
from emceepee.sessions.records import SessionProfile

_NAMES = {"stdio": "the flags --attach auto --session NAME to the command"}
_NAME_IN_URL = "?session=NAME to the URL"


def why_foreign(item_id: str, profile: SessionProfile) -> str | None:
    """Return how to keep one session, or None if the id may be one of this session."""
    made = milliseconds_of(item_id)
    if made is None or made >= milliseconds(profile.opened_at):
        return None
    way = _NAMES.get(profile.transport, _NAME_IN_URL)
    return (
        "It is older than this session and belongs to another one. A client that connects again for each call gets a "
        f"new session each time. To keep one session, add {way} in the client's configuration."
    )
