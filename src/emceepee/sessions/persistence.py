"""Between the sessions' own records and the store."""

from typing import Protocol

from emceepee.backends.spec import BackendSpec, ServerEntry
from emceepee.json_types import JsonObject
from emceepee.store.protocols import ServerStore, StoredServer


class ServerShelf(Protocol):
    """Where a registry keeps what principals added."""

    async def all(self, principal: str) -> list[BackendSpec]: ...
    async def add(self, principal: str, spec: BackendSpec) -> bool: ...
    async def remove(self, principal: str, name: str) -> bool: ...


class StoredServers:
    """Server configurations in a store, written as add_server takes them."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store

    async def all(self, principal: str) -> list[BackendSpec]:
        return [ServerEntry.model_validate(server.entry).spec() for server in await self._store.all(principal)]

    async def add(self, principal: str, spec: BackendSpec) -> bool:
        return await self._store.add(StoredServer(principal=principal, name=spec.name, entry=entry_of(spec)))

    async def remove(self, principal: str, name: str) -> bool:
        return await self._store.remove(principal, name)


def entry_of(spec: BackendSpec) -> JsonObject:
    return ServerEntry.of(spec).model_dump(exclude_none=True)
