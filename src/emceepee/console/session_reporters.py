"""Decides which replica's feed counts for a session that several replicas report, for example while it moves.

A  session ───────────── session ── gone          A had it, and learns late of the takeover
    B          ── session ──────────────────── …      B has it
    page       A ──────── B ── (B) ──── (B) ─── …     the replica that most recently began to report it

A replica that begins to report a session counts from then on; later reports of others are ignored. For the page, the
session is gone only if no replica reports it any more.
"""

from emceepee.console.peers import Peer


class SessionReporters:
    """The reporting replicas of one page's sessions. It does no I/O: the feed's readers call it for each report."""

    def __init__(self) -> None:
        self._told: dict[Peer, set[str]] = {}  # the sessions that each replica reports
        self._shown: dict[str, Peer] = {}  # by session, the replica that most recently began to report it
        self._unconfirmed: dict[Peer, set[str]] = {}  # not reported again since the replica's feed restarted

    def __repr__(self) -> str:
        return f"<SessionReporters {self._shown}>"

    def reporter_of(self, session_id: str) -> Peer | None:
        return self._shown.get(session_id)

    def tell(self, reporter: Peer, session_id: str) -> bool:
        """Record a report of the session's state. Return whether the page should receive it."""
        told = self._told.setdefault(reporter, set())
        self._unconfirmed.get(reporter, set()).discard(session_id)
        if session_id not in told:
            told.add(session_id)
            self._shown[session_id] = reporter
        return self._shown[session_id] == reporter

    def end(self, reporter: Peer, session_id: str) -> bool:
        """Record that the replica lost the session. Return whether no replica has it."""
        self._told.get(reporter, set()).discard(session_id)
        if self._shown.get(session_id) != reporter:
            return False
        heirs = [other for other, told in self._told.items() if session_id in told]
        if heirs:
            self._shown[session_id] = heirs[-1]
            return False
        del self._shown[session_id]
        return True

    # The feed of another replica as a whole.

    def begin(self, reporter: Peer) -> None:
        """The replica's feed begins or restarts: it reports all its sessions."""
        self._unconfirmed[reporter] = set(self._told.get(reporter, ()))

    def complete(self, reporter: Peer) -> list[str]:
        """The replica has reported all its sessions. Return the sessions that ended since its last feed."""
        return self._end_all(reporter, self._unconfirmed.pop(reporter, set()))

    def leave(self, reporter: Peer) -> list[str]:
        """The replica's feed is lost. Return the sessions that are gone with it."""
        self._unconfirmed.pop(reporter, None)
        gone = self._end_all(reporter, self._told.get(reporter, set()))
        self._told.pop(reporter, None)
        return gone

    def _end_all(self, reporter: Peer, session_ids: set[str]) -> list[str]:
        return [session_id for session_id in sorted(session_ids) if self.end(reporter, session_id)]
