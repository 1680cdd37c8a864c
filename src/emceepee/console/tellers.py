"""Whose word counts for a session that more than one replica tells of, as while it moves from one to another.

    A  session ───────────── session ── gone          A had it, and hears late that it was taken over
    B          ── session ──────────────────── …      B has it
    page       A ──────── B ── (B) ──── (B) ─── …     whoever told of it first last

The replica that begins to tell of a session counts from then on: what others still tell of it is passed over, and for
the page it is gone only if nobody is left who tells of it.
"""

from emceepee.console.peers import Peer


class Tellers:
    """Of one page. Nothing is awaited, and nothing read: what is told is said by whoever reads it."""

    def __init__(self) -> None:
        self._told: dict[Peer, set[str]] = {}  # the sessions that each tells of
        self._shown: dict[str, Peer] = {}  # by session, who told of it first last
        self._unconfirmed: dict[Peer, set[str]] = {}  # not told again yet, since the feed of that one began anew

    def __repr__(self) -> str:
        return f"<Tellers {self._shown}>"

    def teller_of(self, session_id: str) -> Peer | None:
        return self._shown.get(session_id)

    def tell(self, teller: Peer, session_id: str) -> bool:
        """It tells how the session stands. Whether that is for the page."""
        told = self._told.setdefault(teller, set())
        self._unconfirmed.get(teller, set()).discard(session_id)
        if session_id not in told:
            told.add(session_id)
            self._shown[session_id] = teller
        return self._shown[session_id] == teller

    def end(self, teller: Peer, session_id: str) -> bool:
        """It no longer has the session. Whether nobody has."""
        self._told.get(teller, set()).discard(session_id)
        if self._shown.get(session_id) != teller:
            return False
        heirs = [other for other, told in self._told.items() if session_id in told]
        if heirs:
            self._shown[session_id] = heirs[-1]
            return False
        del self._shown[session_id]
        return True

    # The feed of another replica, as a whole.

    def begin(self, teller: Peer) -> None:
        """Its feed begins, perhaps anew: it tells of everything that it has."""
        self._unconfirmed[teller] = set(self._told.get(teller, ()))

    def complete(self, teller: Peer) -> list[str]:
        """It has told of everything. The sessions that are gone since its last feed."""
        return self._end_all(teller, self._unconfirmed.pop(teller, set()))

    def leave(self, teller: Peer) -> list[str]:
        """It tells nothing more. The sessions that are gone with it."""
        self._unconfirmed.pop(teller, None)
        gone = self._end_all(teller, self._told.get(teller, set()))
        self._told.pop(teller, None)
        return gone

    def _end_all(self, teller: Peer, session_ids: set[str]) -> list[str]:
        return [session_id for session_id in sorted(session_ids) if self.end(teller, session_id)]
