"""The shutdown of the HTTP endpoint, in stages with time limits.

drain ──▶ new requests go to other replicas, or get a 503; streams that belong to no call end
  │ FINISH_SECONDS
  ├──▶ forwarding stops; calls to backends fail, and their replies give the reason
  │ LET_GO_SECONDS
  ├──▶ every other request is canceled
  │ PASSED_ON_SECONDS, only if other replicas still serve requests that came here
  └──▶ over: the server closes the connections
"""

from dataclasses import dataclass
from typing import Protocol

from emceepee.server.http.handshake_connections import HandshakeConnections
from emceepee.server.http.request_forwarder import RequestForwarder
from emceepee.server.http.stateless import StatelessEndpoint
from emceepee.server.stop_signals import LET_GO_SECONDS, PASSED_ON_SECONDS
from emceepee.sessions.directory.directory import SessionDirectory


class Drainable(Protocol):
    """An application beside the endpoint that ends its streams."""

    def drain(self) -> None: ...


@dataclass(slots=True)
class ShutdownStage:
    """How far the shutdown has come."""

    is_draining: bool = False
    """New requests go to other replicas."""
    is_refusing: bool = False
    """Requests are no longer forwarded."""
    is_over: bool = False
    """Shutdown waits for no more requests."""


class HttpShutdown:
    """Ends the requests of one endpoint, and notifies the applications beside it."""

    def __init__(
        self,
        stage: ShutdownStage,
        directory: SessionDirectory,
        connections: HandshakeConnections,
        stateless: StatelessEndpoint,
        *,
        finish_seconds: float,
        forwarder: RequestForwarder | None = None,
        neighbor: Drainable | None = None,
    ) -> None:
        self._stage, self._directory, self._connections, self._stateless = stage, directory, connections, stateless
        self._finish_seconds, self._forwarder, self._neighbor = finish_seconds, forwarder, neighbor
        self._is_finished = False  # whether all requests that are served here have ended

    def __repr__(self) -> str:
        return f"<HttpShutdown {'over' if self.is_over else 'draining' if self.is_draining else 'not begun'}>"

    @property
    def is_draining(self) -> bool:
        return self._stage.is_draining

    @property
    def is_over(self) -> bool:
        """Whether shutdown no longer waits for any request."""
        return self._stage.is_over or (self._is_finished and not self._is_passing)

    @property
    def _is_passing(self) -> bool:
        return self._forwarder is not None and self._forwarder.is_passing

    def drain(self) -> None:
        """Accept nothing new, end streams that belong to no call, and give calls time to finish."""
        if self.is_draining:
            return
        self._stage.is_draining = True
        for connection in self._connections:
            connection.end_pushes()
        self._stateless.end_listens()
        if self._forwarder is not None:
            self._forwarder.end_streams()
        if self._neighbor is not None:
            self._neighbor.drain()
        self._directory.begin_stop()
        self._directory.clock.call_later(self._finish_seconds, self._stop_calls)

    def _stop_calls(self) -> None:
        """Fail calls to backends, with the reason in their replies, and cancel everything else shortly afterwards."""
        self._stage.is_refusing = True
        self._directory.stop_calls()
        self._directory.clock.call_later(LET_GO_SECONDS, self._cancel_requests)

    def _cancel_requests(self) -> None:
        for connection in self._connections:
            connection.cancel_requests()
        self._stateless.cancel_requests()
        self._is_finished = True
        if self._is_passing:
            self._directory.clock.call_later(PASSED_ON_SECONDS, self._break_off)
        else:
            self._break_off()

    def _break_off(self) -> None:
        """Stop waiting for other replicas. The calls that they serve continue there."""
        self._stage.is_over = True
        if self._forwarder is not None:
            self._forwarder.break_off()
