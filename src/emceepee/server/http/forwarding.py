"""What the endpoint needs of whoever passes requests on to other replicas."""

from enum import Enum
from typing import Protocol

from emceepee.server.http.exchange import HttpRequest
from emceepee.state.replica import Replica


class Outcome(Enum):
    """What became of a request that was passed on."""

    ANSWERED = "answered"
    """The caller has the response, or has left."""
    NOT_HELD = "not held"
    """The other replica does not have the session, or is stopping. The caller was told nothing."""
    UNREACHABLE = "unreachable"
    """There was no connection, so nothing was sent. The caller was told nothing."""
    LOST = "lost"
    """It was sent, and there will be no response: it may have run. The caller was told nothing."""


class Forwarder(Protocol):
    """Passes requests on, with their responses and disconnects."""

    async def forward(
        self, holder: Replica, request: HttpRequest, body: bytes, *, lost_reply: bytes | None = None
    ) -> Outcome:
        """`lost_reply` is the last message of a stream whose replica is lost while it is written."""
        ...
