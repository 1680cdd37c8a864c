"""The search of one session: an index built by the first query and updated by every later one."""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from emceepee.backends.catalog import ListKind
from emceepee.backends.connection import Connection
from emceepee.futures import let_others_run
from emceepee.search.documents import EntryType
from emceepee.search.index import SearchIndex
from emceepee.sessions.lists.entry_list import ask_everywhere
from emceepee.state.limits import Limits
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from emceepee.search.vectors import Vectors

log = EventLog("search")
KINDS = {
    EntryType.TOOL: ListKind.TOOLS,
    EntryType.RESOURCE: ListKind.RESOURCES,
    EntryType.TEMPLATE: ListKind.TEMPLATES,
    EntryType.PROMPT: ListKind.PROMPTS,
}
STEPS_PER_TURN = 20  # entries, some milliseconds of work, before other tasks run


@dataclass(slots=True)
class Refreshed:
    """Errors and omissions of a refresh."""

    errors: list[JsonObject] = field(default_factory=list)
    left_out: int = 0  # entries dropped because of the size limit


class SharedVectors:
    """The word vectors of an installation, read when the first session searches."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._vectors: Vectors | None = None

    def get(self) -> "Vectors | None":
        """Return the vectors, or None without a usable file: the search then uses words alone, and logs the error."""
        if self._vectors is None and self._path is not None:
            from emceepee.search.vectors import Vectors

            try:
                self._vectors = Vectors.load(self._path)
            except (OSError, ValueError, ModuleNotFoundError) as error:
                log.warning("search_vectors_not_used", file=str(self._path), error=str(error))
                self._path = None
        return self._vectors


NO_VECTORS = SharedVectors()


class EntrySearch:
    """The search of one session. It is created on the first search, and closed when the session sleeps."""

    def __init__(self, limits: Limits, vectors: SharedVectors = NO_VECTORS) -> None:
        self.index = SearchIndex(vectors=vectors.get())
        self._limits = limits
        self._refreshing = asyncio.Lock()
        self._listed: dict[tuple[EntryType, str], list[JsonObject]] = {}  # as indexed
        self._is_closed = False

    def close(self) -> None:
        self._is_closed = True
        if not self._refreshing.locked():
            self.index.close()

    async def refresh(
        self, known: Sequence[Connection], queried: Sequence[Connection], types: Collection[EntryType]
    ) -> Refreshed:
        """Update entries of these types for the `queried` servers. Remove servers that are no longer `known`.

        Entries of a server that is not queried stay searchable: a call may reconnect it.
        """
        async with self._refreshing:
            try:
                return await self._refresh(known, queried, types)
            finally:
                if self._is_closed:
                    self.index.close()

    async def _refresh(
        self, known: Sequence[Connection], queried: Sequence[Connection], types: Collection[EntryType]
    ) -> Refreshed:
        refreshed = Refreshed()
        kinds = {entry_type: KINDS[entry_type] for entry_type in types if entry_type in KINDS}
        patience = self._limits.list_patience_seconds
        answers = await asyncio.gather(*(ask_everywhere(queried, kind, patience=patience) for kind in kinds.values()))
        with self.index.changing():
            self._forget_others({connection.spec.name for connection in known})
            if EntryType.SERVER in types:
                for connection in known:
                    await self._replace(EntryType.SERVER, connection.spec.name, [_described(connection)], refreshed)
            for entry_type, answer in zip(kinds, answers, strict=True):
                for server, outcome in answer.items():
                    if isinstance(outcome, str):
                        _note_error(refreshed, server, outcome)
                    else:
                        await self._replace(entry_type, server, outcome, refreshed)
        return refreshed

    def _forget_others(self, known: set[str]) -> None:
        for server in self.index.servers() - known:
            self.index.remove(server)
            self._listed = {key: entries for key, entries in self._listed.items() if key[1] != server}

    async def _replace(
        self, entry_type: EntryType, server: str, entries: list[JsonObject], refreshed: Refreshed
    ) -> None:
        room = max(self._limits.searched_entries - len(self.index) + self.index.count(entry_type, server), 0)
        if len(entries) > room:
            refreshed.left_out += len(entries) - room
            entries = entries[:room]
        if self._listed.get((entry_type, server)) == entries:  # quick, since the entries are mostly the same objects
            return
        self._listed.pop((entry_type, server), None)
        for step, _ in enumerate(self.index.replace(entry_type, server, entries), 1):
            if step % STEPS_PER_TURN == 0:
                await let_others_run()
        self._listed[entry_type, server] = entries


def _described(connection: Connection) -> JsonObject:
    """Return a server as an entry, described by its configuration or else by the server itself."""
    facts = connection.facts
    info = facts.server_info if facts else {}
    own = info.get("description") or (facts.instructions if facts else None)
    description = connection.spec.description or (own if isinstance(own, str) else "")
    return {"name": connection.spec.name, "title": info.get("title"), "description": description}


def _note_error(refreshed: Refreshed, server: str, message: str) -> None:
    """Record one error per server, even if several of its lists fail."""
    if all(error["server"] != server for error in refreshed.errors):
        refreshed.errors.append({"server": server, "message": message})
