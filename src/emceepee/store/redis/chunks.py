"""Large parts of sessions in Redis, as chunks. Each session has one hash of them, which is deleted with it."""

from collections.abc import Sequence
from typing import Any

from emceepee.store.redis.connection.commands import Commands, ScriptCall, UnknownOutcome
from emceepee.store.redis.connection.redis_connection import Word
from emceepee.store.redis.held_sessions import HeldSessions
from emceepee.store.redis.keys import KeyNames, chunks_name, session_name
from emceepee.store.redis.scripts.session_scripts import PUT_CHUNKS

DROPPED_AT_ONCE = 1000


class Chunks:
    """Chunks of the sessions that this process holds. Raises: StoreUnavailable."""

    def __init__(self, commands: Commands, names: KeyNames, held_sessions: HeldSessions) -> None:
        self._commands, self._names, self._held_sessions = commands, names, held_sessions

    async def put(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        if (tag := self._tag_of(session_id)) is None:
            return False
        words: list[Word] = [
            word for number, chunk in enumerate(chunks, first) for word in (_field(name, number), chunk)
        ]
        call = ScriptCall(PUT_CHUNKS, [session_name(tag, session_id), chunks_name(tag, session_id)], words)
        try:
            (is_put,) = await self._commands.run_all([call])
        except UnknownOutcome as error:
            raise error.because from None
        return bool(is_put)

    async def read(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        if (tag := self._tag_of(session_id)) is None:
            return []
        fields = [_field(name, number) for number in range(first, first + count)]
        found = await self._execute("HMGET", chunks_name(tag, session_id), *fields)
        return found[: found.index(None)] if None in found else list(found)

    async def drop(self, session_id: str, name: str, count: int) -> None:
        if (tag := self._tag_of(session_id)) is None:
            return
        for first in range(0, count, DROPPED_AT_ONCE):
            fields = [_field(name, number) for number in range(first, min(first + DROPPED_AT_ONCE, count))]
            await self._execute("HDEL", chunks_name(tag, session_id), *fields)

    def _tag_of(self, session_id: str) -> str | None:
        return self._held_sessions.tag_of(session_id) or (None if self._commands.is_spread else self._names.tags[0])

    async def _execute(self, *words: Word) -> Any:
        try:
            return await self._commands.execute(*words)
        except UnknownOutcome as error:
            raise error.because from None


def _field(name: str, number: int) -> str:
    return f"{name}:{number}"
