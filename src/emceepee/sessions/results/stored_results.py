"""Large results that a caller reads in parts: where their text is stored, and for how long.

The store has the text, in chunks; a session only has the list of results. Results of a session that is not stored go to
memory, as do results that the store fails to save. The oldest are dropped first.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from emceepee.clock import Clock
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.sessions.records import RecordKind
from emceepee.sessions.results.long_work import LongWork
from emceepee.sessions.results.result_budget import ResultBudget
from emceepee.sessions.unsaved import Unsaved
from emceepee.state.limits import Limits
from emceepee.state.stored_result import StoredResult
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Store, StoreUnavailable
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
CHUNK_BYTES = 256 << 10
CHUNKS_AT_ONCE = 4  # chunks written or read per call, so that other callers can use the store in between


@dataclass(slots=True, eq=False)
class ResultStorage:
    """One per installation. `durable` is the store of sessions that outlive the process, if there is one."""

    budget: ResultBudget
    durable: Store | None = None
    memory: Store = field(default_factory=MemoryStore)
    unwanted: list[tuple[str, StoredResult]] = field(default_factory=list)  # dropped results by session, to delete
    parsing: LongWork = field(default_factory=LongWork)  # one whole text in memory at a time
    outlining: LongWork = field(default_factory=LongWork)

    async def write(self, session_id: str, handle: str, text: bytes, *, is_followed: bool) -> bool:
        """Store the text. Return True if it is in the durable store, or False if it is in memory."""
        if self.durable is not None and is_followed:
            try:
                if await _write(self.durable, session_id, handle, text):
                    return True
            except StoreUnavailable as error:
                log.warning("result_not_stored", error=str(error))
        await _write(self.memory, session_id, handle, text)
        return False

    def store_of(self, kept: StoredResult) -> Store:
        return self.durable if kept.is_stored and self.durable is not None else self.memory

    async def drop_unwanted(self) -> None:
        unwanted, self.unwanted = self.unwanted, []
        for session_id, kept in unwanted:
            await self.drop(session_id, kept)

    async def drop(self, session_id: str, kept: StoredResult) -> None:
        try:
            await self.store_of(kept).drop_chunks(session_id, kept.handle, kept.chunks)
        except StoreUnavailable as error:  # it is deleted with its session
            log.warning("result_not_dropped", error=str(error))


async def _write(store: Store, session_id: str, handle: str, text: bytes) -> bool:
    view = memoryview(text)
    for start in range(0, len(text), CHUNK_BYTES * CHUNKS_AT_ONCE):
        part = view[start : start + CHUNK_BYTES * CHUNKS_AT_ONCE]
        chunks = [bytes(part[at : at + CHUNK_BYTES]) for at in range(0, len(part), CHUNK_BYTES)]
        if not await store.put_chunks(session_id, handle, start // CHUNK_BYTES, chunks):
            return False
    return True


class StoredResults:
    """The large results of one session."""

    def __init__(
        self,
        session_id: str,
        storage: ResultStorage,
        *,
        clock: Clock,
        limits: Limits,
        unsaved: Unsaved,
        new_id: Callable[[], str],
        why_foreign: Callable[[str], str | None],
    ) -> None:
        self._why_foreign = why_foreign
        self._session_id, self._storage, self._unsaved, self._new_id = session_id, storage, unsaved, new_id
        self._clock, self._limits = clock, limits
        self._kept: dict[str, StoredResult] = {}
        self.parsing, self.outlining = storage.parsing, storage.outlining

    def __len__(self) -> int:
        return len(self._kept)

    def find(self, handle: str) -> StoredResult | None:
        return self._kept.get(handle)

    def get(self, handle: str) -> StoredResult:
        """Raises: EmceepeeError."""
        kept = self._kept.get(handle)
        if kept is None:
            most = self._limits.results_per_session
            why = self._why_foreign(handle) or (
                f"A session stores its last {most} large results, up to {self._limits.result_bytes_per_session} bytes."
            )
            raise EmceepeeError(
                f'No result has the handle "{handle[:60]}" here. {why} Call the tool again if you still need it.',
                code=ErrorCode.RESULT_NOT_FOUND,
            )
        return kept

    async def keep(self, text: bytes, *, is_json: bool) -> StoredResult:
        """Store the text, and return when it is written. Older results may be dropped to make room."""
        handle = self._new_id()
        if self._unsaved:
            await self._unsaved.save()  # a new session must be in the store before its chunks
        is_stored = await self._storage.write(self._session_id, handle, text, is_followed=self._unsaved.is_followed)
        kept = StoredResult(
            handle=handle,
            size=len(text),
            chunks=-(-len(text) // CHUNK_BYTES),
            is_json=is_json,
            is_stored=is_stored,
            created_at=self._clock.now(),
        )
        self._add(kept)
        self._unsaved.mark(RecordKind.RESULT, handle)
        while len(self._kept) > self._limits.results_per_session:
            oldest = next(iter(self._kept))
            self._storage.budget.release(self, oldest)
            self.drop_result(oldest)
        await self._storage.drop_unwanted()
        return kept

    def _add(self, kept: StoredResult) -> None:
        self._kept[kept.handle] = kept
        self._storage.budget.keep(self, kept.handle, kept.size)

    def drop_result(self, result_id: str) -> None:
        """Drop the result to free memory."""
        if (kept := self._kept.pop(result_id, None)) is not None:
            self._unsaved.mark(RecordKind.RESULT, result_id)
            self._storage.unwanted.append((self._session_id, kept))

    def restore(self, results: "list[StoredResult]") -> None:
        for kept in sorted(results, key=lambda each: each.handle):
            self._add(kept)

    # Reading.

    async def read(self, kept: StoredResult, offset: int, length: int) -> bytes:
        """Raises: EmceepeeError."""
        first, skipped = divmod(offset, CHUNK_BYTES)
        last = -(-(offset + length) // CHUNK_BYTES)
        found = b"".join([part async for part in self.parts(kept, first, last)])
        return found[skipped : skipped + length]

    async def read_whole(self, kept: StoredResult) -> bytearray:
        """Return the whole text without a second copy in memory. Raises: EmceepeeError."""
        whole, position = bytearray(kept.size), 0
        async for part in self.parts(kept):
            whole[position : position + len(part)] = part
            position += len(part)
        return whole

    async def parts(self, kept: StoredResult, first: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the text of the chunks from `first` to `end`, several chunks at a time. Raises: EmceepeeError."""
        store = self._storage.store_of(kept)
        end = kept.chunks if end is None else min(end, kept.chunks)
        while first < end:
            count = min(CHUNKS_AT_ONCE, end - first)
            try:
                chunks = await store.read_chunks(self._session_id, kept.handle, first, count)
            except StoreUnavailable as error:
                raise EmceepeeError(f"The result cannot be read at this time: {error} Try again later.") from None
            if len(chunks) < count:
                raise EmceepeeError(
                    f'A part of the result "{kept.handle}" is lost. Call the tool again if you still need it.',
                    code=ErrorCode.RESULT_NOT_FOUND,
                )
            first += count
            yield b"".join(chunks)

    async def close(self) -> None:
        """Drop results that are only in memory: they end with the session."""
        self._storage.budget.leave(self)
        for kept in self._kept.values():
            if not kept.is_stored:
                await self._storage.drop(self._session_id, kept)
        self._kept.clear()
