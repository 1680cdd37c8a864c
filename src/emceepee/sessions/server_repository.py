"""Between the sessions' own records and the store."""

from dataclasses import replace
from typing import Protocol

from emceepee.backends.spec import BackendSpec, HttpTarget, ServerEntry
from emceepee.json_types import JsonObject
from emceepee.store.protocols import ServerStore, StoredServer

_PUBLIC = "isPublic"  # added by a caller from elsewhere, so it must stay out of private networks


class ServerRepository(Protocol):
    """Where a registry keeps what principals added."""

    async def all(self, principal: str) -> list[BackendSpec]: ...
    async def add(self, principal: str, spec: BackendSpec) -> bool: ...
    async def remove(self, principal: str, name: str) -> bool: ...


class StoredServers:
    """Server configurations in a store, written as add_server takes them."""

    def __init__(self, store: ServerStore) -> None:
        self._store = store

    async def all(self, principal: str) -> list[BackendSpec]:
        return [spec_of(server.entry) for server in await self._store.all(principal)]

    async def add(self, principal: str, spec: BackendSpec) -> bool:
        return await self._store.add(StoredServer(principal=principal, name=spec.name, entry=entry_of(spec)))

    async def remove(self, principal: str, name: str) -> bool:
        return await self._store.remove(principal, name)


def entry_of(spec: BackendSpec) -> JsonObject:
    entry = ServerEntry.of(spec).model_dump(exclude_none=True)
    is_public = isinstance(spec.target, HttpTarget) and spec.target.is_public
    return entry | {_PUBLIC: True} if is_public else entry


def spec_of(entry: JsonObject) -> BackendSpec:
    """What `entry_of` was given. Callers cannot write the mark: it says what they may not do."""
    spec = ServerEntry.model_validate({key: value for key, value in entry.items() if key != _PUBLIC}).spec()
    if entry.get(_PUBLIC) and isinstance(spec.target, HttpTarget):
        return replace(spec, target=replace(spec.target, is_public=True))
    return spec
