"""How long a result of 50 MB takes to be kept in the state file, and to be read from it: a part, a grep, a path."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from bench.contestants import EMCEEPEE
from bench.results import Results
from bench.settings import Settings, progress
from emceepee.bounds.budget import Budget
from emceepee.clock import SystemClock
from emceepee.sessions.results.result_budget import ResultBudget
from emceepee.sessions.results.stored_results import ResultStorage, StoredResults
from emceepee.sessions.unsaved import Unsaved
from emceepee.state.limits import Limits
from emceepee.state.regex import LineRegex
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Commit, Lease, SessionHead
from emceepee.tools.excerpts.grep import LineSearch
from emceepee.tools.excerpts.json_path import Selection, parse_path

PART = "large-results"
ROW = b'{"id":%d,"name":"something that was found","tags":["a","b"],"score":0.25}'
ROWS = 700_000
KEEP, READ, GREP, PATH = "50 MB kept", "a part of 16 kB", "a grep over 50 MB", "a path in 50 MB"
TRIES = 5


def measure(settings: Settings, results: Results) -> None:
    if settings.has(EMCEEPEE):
        progress("large results")
        for name, seconds in asyncio.run(_times()).items():
            results.add(PART, name, seconds * 1000, "ms")


def document() -> bytes:
    """50 MB of JSON, a line for each row, and one that is found at the end."""
    rows = b",\n".join(ROW % number for number in range(ROWS))
    return b'{"rows":[\n%b,\n{"id":"needle"}]}' % rows


class _Followed(Unsaved):
    """Of a session that is in the store, and changes in nothing else."""

    is_followed = True


async def _times() -> dict[str, float]:
    with TemporaryDirectory(prefix="emceepee-bench-") as directory:
        clock, limits = SystemClock(), Limits()
        store = await SqliteStore.open(Path(directory) / "state.db", clock)
        keys = frozenset({SessionKey("bench", KeyKind.NAME, "s")})
        until = datetime.now(UTC) + timedelta(days=1)
        head = SessionHead(session_id="s", principal="bench", keys=keys, expires_at=until)
        await store.commit([Commit(head=head, lease=Lease(0, 0))])
        storage = ResultStorage(ResultBudget(1 << 30, 1 << 30), store)
        results = StoredResults(
            "s",
            storage,
            clock=clock,
            limits=limits,
            unsaved=_Followed(),
            new_id=lambda: "result",
            why_foreign=lambda _: None,
        )
        text = document()
        began = perf_counter()
        kept = await results.keep(text, is_json=True)
        times = {KEEP: perf_counter() - began}
        assert kept.is_stored

        async def read() -> None:
            await results.read(kept, kept.size // 2, 16 << 10)

        async def grep() -> None:
            search = LineSearch(LineRegex(r"\bneedle\b"), start=0, room=1000, clock=clock)
            assert len((await search.run(results.parts(kept))).matches) == 1

        async def path() -> None:
            whole = await results.read(kept, 0, kept.size)
            budget = Budget(max_bytes=8 * kept.size, max_nodes=2_000_000)
            assert next(Selection(parse_path("$.rows[-1].id"), budget).of(whole))

        for name, work in ((READ, read), (GREP, grep), (PATH, path)):
            tries = []
            for _ in range(TRIES):
                began = perf_counter()
                await work()
                tries.append(perf_counter() - began)
            times[name] = min(tries)
        await store.close()
    return times
