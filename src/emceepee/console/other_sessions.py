"""Queries and actions for sessions of other replicas. The replica that last reported a session is asked first."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from urllib.parse import urlencode

from emceepee.console.console_request import ConsoleRequest
from emceepee.console.peers import Peer, PeerAnswer, PeerConsoles, PeerLost, PeerRequest
from emceepee.console.session_reporters import SessionReporters
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.telemetry.logs import EventLog
from emceepee.web.asgi import JSON_TYPE, respond
from emceepee.wire.codec import decode
from emceepee.wire.json_types import JsonObject

log = EventLog("console")
QUERY_SECONDS = 5.0
ACTION_SECONDS = 60.0  # reconnecting a server may take that long


class SessionNotHere(EmceepeeError):
    def __init__(self) -> None:
        super().__init__("That session has ended.", code=ErrorCode.SESSION_NOT_FOUND)


class OtherSessions:
    """The sessions of other replicas. Each replica serves only what the principal may see, and forwards to no other."""

    def __init__(self, peers: PeerConsoles, reporters: Callable[[], Iterable[SessionReporters]]) -> None:
        """`reporters` returns the session reporters of each open page."""
        self._peers, self._reporters = peers, reporters

    async def query(self, request: ConsoleRequest, session_id: object) -> None:
        """Return the answer of the first replica that has the session. Raises: SessionNotHere."""
        wanted = _peer_request(request)
        for peer in self._probable_first(session_id):
            try:
                answer = await self._peers.ask(peer, wanted, within=QUERY_SECONDS)
            except PeerLost:
                continue  # another replica may have taken over the session
            if answer is not None:
                await _pass_back(request, answer)
                return
        raise SessionNotHere

    async def act(self, request: ConsoleRequest, session_id: object, body: bytes) -> None:
        """Run the action once. Raises: EmceepeeError."""
        wanted = _peer_request(request, body)
        for peer in self._probable_first(session_id):
            try:
                answer = await self._peers.ask(peer, wanted, within=ACTION_SECONDS)
            except PeerLost:
                raise EmceepeeError(
                    "The session's replica did not answer, and may have done it: check before you repeat it."
                ) from None
            if answer is not None:
                await _pass_back(request, answer)
                return
        raise SessionNotHere

    async def documents(self, request: ConsoleRequest) -> list[JsonObject]:
        """Return the answers of all replicas that respond to the same request in time."""
        wanted = _peer_request(request)
        found = await asyncio.gather(*(self._ask_for_document(peer, wanted) for peer in self._peers.peers))
        return [document for document in found if document is not None]

    async def _ask_for_document(self, peer: Peer, wanted: PeerRequest) -> JsonObject | None:
        try:
            answer = await self._peers.ask(peer, wanted, within=QUERY_SECONDS)
            document = None if answer is None or answer.status != 200 else decode(answer.body)
        except (PeerLost, ValueError) as error:
            log.warning("peer_skipped", peer=peer, error=str(error))
            return None
        return document if isinstance(document, dict) else None

    def _probable_first(self, session_id: object) -> Sequence[Peer]:
        """Return the peers, the session's probable owner first; no peers if the id is not a string."""
        if not isinstance(session_id, str):
            return ()
        owners = {reporters.reporter_of(session_id) for reporters in self._reporters()}
        return sorted(self._peers.peers, key=lambda peer: peer not in owners)


def _peer_request(request: ConsoleRequest, body: bytes = b"") -> PeerRequest:
    query = f"?{urlencode(request.query)}" if request.query else ""
    method = "POST" if body else "GET"
    return PeerRequest(principal=request.principal or "", method=method, target=request.path + query, body=body)


async def _pass_back(request: ConsoleRequest, answer: PeerAnswer) -> None:
    await respond(request.send, answer.status, answer.body, JSON_TYPE)
