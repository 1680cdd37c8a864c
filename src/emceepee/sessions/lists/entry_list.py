"""List entries of many backends in parallel. No backend hides or delays another."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from emceepee.backends.catalog import ListKind
from emceepee.backends.connection import Connection
from emceepee.errors import EmceepeeError
from emceepee.lifecycle import TaskOwner
from emceepee.wire.json_types import JsonObject


@dataclass(slots=True)
class EntryList:
    """Entries labeled with their server's name, and errors of servers without a list."""

    entries: list[JsonObject] = field(default_factory=list)
    errors: list[JsonObject] = field(default_factory=list)


async def list_everywhere(connections: Sequence[Connection], kind: ListKind, *, patience: float) -> EntryList:
    """Return the entries of all servers in one list."""
    listing = EntryList()
    for name, outcome in (await ask_everywhere(connections, kind, patience=patience)).items():
        if isinstance(outcome, str):
            listing.errors.append({"server": name, "message": outcome})
        else:
            listing.entries += [{"server": name} | entry | {"server": name} for entry in outcome]
    return listing


async def ask_everywhere(
    connections: Sequence[Connection], kind: ListKind, *, patience: float
) -> dict[str, list[JsonObject] | str]:
    """Return each server's entries as received, or an error message, by server name.

    All servers are asked at once. With several servers, those not ready within `patience` seconds are skipped. A single
    server has no such timeout.
    """
    owner = TaskOwner("listing")
    asking = [owner.spawn(_list_one(connection, kind), name=connection.spec.name) for connection in connections]
    if not asking:
        return {}
    try:
        await asyncio.wait(asking, timeout=patience if len(asking) > 1 else None)
        return {
            connection.spec.name: task.result() if task.done() else _not_yet(connection)
            for connection, task in zip(connections, asking, strict=True)
        }
    finally:
        for task in asking:
            task.cancel()


async def _list_one(connection: Connection, kind: ListKind) -> list[JsonObject] | str:
    try:
        return await connection.lists.entries(kind)
    except EmceepeeError as error:
        return str(error)


def _not_yet(connection: Connection) -> str:
    state = "has not answered yet" if connection.is_connected else "is still connecting"
    return f'Server "{connection.spec.name}" {state}. Name it in `server` to wait for it, or call again.'
