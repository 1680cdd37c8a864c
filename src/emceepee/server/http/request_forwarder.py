"""Interface for forwarding a request to the replica that holds its session."""

from collections.abc import Callable
from enum import Enum, auto
from typing import Protocol

from emceepee.server.http.exchange import HttpRequest
from emceepee.state.replica import Replica

LostReply = Callable[[], bytes | None]  # returns the JSON-RPC reply to the request in the body; None if it expects none


class ForwardOutcome(Enum):
    """The outcome of a forwarded request. Only with `ANSWERED` has anything been written to the caller."""

    ANSWERED = auto()
    """The response, or the part of it that arrived, was passed back. Or the caller has left, and the holder knows."""
    NOT_HELD = auto()
    """The replica does not hold the session, or no longer accepts requests: it did nothing."""
    UNREACHABLE = auto()
    """The connection failed, or another program answers at that address: nothing was done."""
    LOST = auto()
    """The request was sent, but the replica was lost before its response began: the call may have run."""


class RequestForwarder(Protocol):
    """Passes requests on to the replicas that hold their sessions."""

    async def forward(
        self, holder: Replica, request: HttpRequest, body: bytes, *, lost_reply: LostReply = lambda: None
    ) -> ForwardOutcome:
        """Stream the holder's response to the caller. `lost_reply` ends a stream that broke off."""
        ...

    @property
    def is_passing(self) -> bool:
        """Whether a forwarded call still waits for its answer."""
        ...

    def end_streams(self) -> None:
        """Shut down: end streams that belong to no call, so that their callers reopen them elsewhere."""
        ...

    def break_off(self) -> None:
        """Stop waiting. Holders see these callers as disconnected; running calls continue there."""
        ...
