"""This process as one of several replicas: its listener, and its knowledge of the others.

The order matters. First the listener is bound, so that the store can announce its address. Then the store assigns the
slot. Only then does the process send requests to other replicas and serve theirs.
"""

import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from emceepee.clock import Clock
from emceepee.console.console_app import ConsoleApp
from emceepee.console.peers import PeerConsoles
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.replicas.console_hops import ConsoleHops, ReplicaConsoles
from emceepee.replicas.forwarder import Forwarder
from emceepee.replicas.hop_app import HopParts
from emceepee.replicas.listener import BoundListener, bind
from emceepee.server.http.http_endpoint import HttpEndpoint
from emceepee.server.http.request_router import ReplicaParts
from emceepee.sessions.directory.placement import Placement
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica
from emceepee.store.store import Store


class ReplicaTls(NamedTuple):
    """The contexts of the listening side and of the connecting side."""

    server: ssl.SSLContext
    client: ssl.SSLContext


def tls_contexts(certificate: Path, key: Path, authority: Path | None = None) -> ReplicaTls:
    """Return the contexts. With an authority, both sides must show a certificate that it issued. Without an authority,
    a listener must show a generally trusted certificate, or exactly the certificate that is configured here.

    Raises:
        OSError: a file cannot be read or is invalid (`ssl.SSLError`).
    """
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cafile=authority)
    client.load_cert_chain(certificate, key)
    if authority is None:
        client.load_verify_locations(certificate)
        client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    else:
        server.load_verify_locations(authority)
        server.verify_mode = ssl.CERT_REQUIRED
    return ReplicaTls(server, client)


class Replication:
    """Created by `listening`. Without a listener, for state in memory, it shares nothing and does nothing."""

    def __init__(
        self, clock: Clock, limits: Limits, listener: BoundListener | None = None, tls: ReplicaTls | None = None
    ) -> None:
        self._clock, self._limits, self._listener, self._tls = clock, limits, listener, tls
        self._store: Store | None = None
        self._forwarder: Forwarder | None = None
        self._placement: Placement | None = None
        self.consoles: PeerConsoles | None = None  # of the other replicas, once this one has joined them

    @classmethod
    @asynccontextmanager
    async def listening(
        cls, clock: Clock, limits: Limits, listen: tuple[str, int] | None, tls_files: Sequence[Path] = ()
    ) -> "AsyncIterator[Replication]":
        """Listen on the given host and port, or else on a Unix socket.

        Raises:
            OSError: the address is in use or not available, or a certificate file cannot be read.
        """
        tls = tls_contexts(*tls_files) if tls_files else None
        with bind(listen, tls.server if tls is not None else None) as listener:
            yield cls(clock, limits, listener, tls)

    @property
    def address(self) -> str:
        """The address that the other replicas learn; "" without a listener."""
        return "" if self._listener is None else self._listener.address

    def has_others(self) -> bool:
        """Whether this process has joined other replicas that it can query."""
        return self._placement is not None and bool(self._placement.others)

    @asynccontextmanager
    async def joined(self, store: Store) -> AsyncIterator[ReplicaParts | None]:
        """Join the other replicas, and yield the parts for forwarding requests. Raises: StoreError."""
        if self._listener is None:
            yield None
            return
        lease_seconds = self._limits.replica_lease_seconds
        self._store, self._key = store, await store.replica_secret()
        self._placement = Placement(store, self._clock, lease_seconds=lease_seconds)
        await self._placement.refresh()
        tls: ssl.SSLContext | None = None if self._tls is None else self._tls.client
        async with Forwarder.running(self._clock, key=self._key, own=self._own, tls=tls) as forwarder:
            self._forwarder = forwarder
            self.consoles = ReplicaConsoles(forwarder, self._placement, self._clock, self._limits)
            yield ReplicaParts(forwarder=forwarder, placement=self._placement, lease_seconds=lease_seconds)

    @asynccontextmanager
    async def serving(self, endpoint: HttpEndpoint, console: ConsoleApp | None = None) -> AsyncIterator[None]:
        """Serve forwarded requests, and watch which replicas exist."""
        if self._listener is None or self._placement is None or self._forwarder is None:
            yield
            return
        parts = HopParts(
            clock=self._clock,
            key=self._key,
            own=self._own,
            endpoint=endpoint,
            console=None if console is None else ConsoleHops(console),
            body_bytes=self._limits.request_body_bytes,
        )
        tasks = TaskOwner("replicas")
        async with self._listener.serve(parts, self._limits) as hops:
            for watcher in (self._forwarder.drop, hops.drop, endpoint.directory.handle_lost_replica):
                self._placement.when_gone(watcher)
            tasks.spawn(self._placement.run(endpoint.directory.storage.confirm), name="look")
            try:
                yield
            finally:
                await tasks.close(within=CLOSE_IDLE_SECONDS)

    def _own(self) -> Replica:
        assert self._store is not None  # set by `joined`
        replica = self._store.replica
        assert replica is not None  # a joined store is shared
        return replica
