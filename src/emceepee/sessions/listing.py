"""One list over many backends: in parallel, and no backend hides or delays another."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from emceepee.backends.catalog import Kind
from emceepee.backends.connection import Connection
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner


@dataclass(slots=True)
class Listing:
    """Entries with the name of their server in front, and what could not be had."""

    entries: list[JsonObject] = field(default_factory=list)
    errors: list[JsonObject] = field(default_factory=list)


async def list_everywhere(connections: Sequence[Connection], kind: Kind, *, patience: float) -> Listing:
    """Ask all at once. Of several, those not ready within `patience` seconds are named as errors; one is waited for."""
    owner = TaskOwner("listing")
    asking = [owner.spawn(_list_one(connection, kind), name=connection.spec.name) for connection in connections]
    if not asking:
        return Listing()
    try:
        await asyncio.wait(asking, timeout=patience if len(asking) > 1 else None)
        listing = Listing()
        for connection, task in zip(connections, asking, strict=True):
            name = connection.spec.name
            outcome = task.result() if task.done() else _not_yet(connection)
            if isinstance(outcome, str):
                listing.errors.append({"server": name, "message": outcome})
            else:
                listing.entries += [{"server": name} | entry | {"server": name} for entry in outcome]
        return listing
    finally:
        for task in asking:
            task.cancel()


async def _list_one(connection: Connection, kind: Kind) -> list[JsonObject] | str:
    try:
        return await connection.entries(kind)
    except EmceepeeError as error:
        return str(error)


def _not_yet(connection: Connection) -> str:
    state = "has not answered yet" if connection.is_connected else "is still connecting"
    return f'Server "{connection.spec.name}" {state}. Name it in `server` to wait for it, or call again.'
