"""The sessions whose leases this process holds, to its knowledge."""

from collections.abc import Mapping
from dataclasses import dataclass

from emceepee.store.store import Lease


@dataclass(frozen=True, slots=True)
class Held:
    """A held session: its partition, and the fencing token of its lease."""

    tag: str
    fence: int


class HeldSessions:
    """Held sessions by id. `may_have_lost_track` is set when the reply to a take or a release may have been lost."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self.may_have_lost_track = False

    def __contains__(self, session_id: str) -> bool:
        return session_id in self._held

    def add(self, session_id: str, tag: str, fence: int) -> None:
        self._held[session_id] = Held(tag, fence)

    def drop(self, session_id: str, fence: int | None = None) -> None:
        """Remove a session. If `fence` is given, do so only if the session is held under that fence."""
        if fence is None or (session_id in self._held and self._held[session_id].fence == fence):
            self._held.pop(session_id, None)

    def tag_of(self, session_id: str) -> str | None:
        return self._held[session_id].tag if session_id in self._held else None

    def leases(self) -> Mapping[str, Lease]:
        """Return leases to release all sessions. Their revision is 0, because a release ignores it."""
        return {session_id: Lease(held.fence, 0) for session_id, held in self._held.items()}
