"""All sessions of an installation with one scripted backend, and a clock that only the test moves."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from emceepee.backends.spec import BackendSpec
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.placement import Placement
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.state.limits import Limits
from emceepee.store.store import Store
from emceepee.telemetry.journal import SpanObserver
from support.backends.scripted_backend import ScriptedBackend, ScriptedDialer
from support.fakes.clock import FakeClock
from support.sessions.scene import scripted_spec
from support.sessions.session_parts import close_scripts, session_parts


@dataclass
class Installation:
    clock: FakeClock
    directory: SessionDirectory
    backend: ScriptedBackend
    backends: dict[str, ScriptedBackend]
    registry: ServerRegistry
    dialer: ScriptedDialer
    placement: Placement | None = None

    def add_backend(self, name: str) -> None:
        """One that can be added as a server."""
        self.dialer.backends[name] = ScriptedBackend()

    @property
    def links(self) -> int:
        """To the server "one"."""
        return sum(not link.closed.done() for link in self.backend.links)

    @property
    def connected(self) -> list[str]:
        """The servers that any session is connected to."""
        return [name for name, one in self.backends.items() if any(not link.closed.done() for link in one.links)]


@asynccontextmanager
async def an_installation(
    *,
    others: int = 0,
    store: Store | None = None,
    clock: FakeClock | None = None,
    backend: ScriptedBackend | None = None,
    specs: dict[str, BackendSpec] | None = None,
    observers: tuple[SpanObserver, ...] = (),
    is_contested: bool = False,
    **limits: Any,
) -> AsyncIterator[Installation]:
    """`others` are further servers besides "one": "other1" and so on, which only answer lists.

    `backend` is "one", if it is not a plain one, and `specs` are configurations that are not the usual ones.

    With a `store`, sessions outlive the installation: give the next one `store.another_process()` and the same clock.
    If the store's process has an address, the installation is one of several replicas.
    """
    clock, backend = clock or FakeClock(), backend or ScriptedBackend()
    backends = {"one": backend} | {f"other{number}": ScriptedBackend() for number in range(1, others + 1)}
    settings = Limits(health_check_seconds=0, **limits)
    configured = {name: scripted_spec(name) for name in backends} | (specs or {})
    registry = ServerRegistry(configured.values(), store=store)
    placement = None
    if store is not None and store.replica is not None and store.replica.address:
        placement = Placement(store, clock, lease_seconds=settings.replica_lease_seconds)
        await placement.refresh()
    dialer = ScriptedDialer(**backends)
    parts = session_parts(registry, dialer, clock, settings, store, observers)
    directory = SessionDirectory(parts, store, placement, is_contested=is_contested)
    await directory.look_after_store()
    try:
        yield Installation(clock, directory, backend, backends, registry, dialer, placement)
    finally:
        await directory.close_all()
        await close_scripts(parts)
