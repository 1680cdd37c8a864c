"""The servers of the operator's configuration, as a session sees them that joins the registry."""

from emceepee.backends.spec import BackendSpec
from emceepee.sessions.servers.registry import ServerRegistry, Specs


class _Newcomer:
    """A session that takes no notice of changes."""

    def on_server_added(self, spec: BackendSpec) -> None: ...

    async def on_server_removed(self, name: str) -> None: ...

    async def on_server_configured(self, spec: BackendSpec) -> None: ...

    def on_disabled_changed(self) -> None: ...


def operator_servers(registry: ServerRegistry) -> Specs:
    """Return what a principal has that has added no server."""
    newcomer = _Newcomer()
    specs = registry.join("newcomer", newcomer)
    registry.leave("newcomer", newcomer)
    return specs
