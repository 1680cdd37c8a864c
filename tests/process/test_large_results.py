"""A result of 50 MB stays in the state file, and reading it takes little memory and time."""

import json
import tracemalloc
from collections.abc import AsyncIterator
from time import perf_counter
from typing import NamedTuple

import pytest
import pytest_asyncio

from emceepee.clock import SystemClock
from emceepee.sessions.session import Session
from emceepee.store.sqlite.sqlite_store import SqliteStore
from support.figures import record_figure
from support.sessions.installation import an_installation
from support.sessions.request_contexts import call_tool

pytestmark = pytest.mark.asyncio(loop_scope="module")
ROWS = 700_000
MIB = 1 << 20


class LargeResult(NamedTuple):
    session: Session
    handle: str


def document() -> str:
    row = '{"id":%d,"name":"something that was found","tags":["a","b"],"score":0.25}'
    return '{"rows":[\n' + ",\n".join(row % number for number in range(ROWS)) + ',\n{"id":"needle"}]}'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def large(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LargeResult]:
    """A large result in a session with state in a file. No test changes it."""
    store = await SqliteStore.open(tmp_path_factory.mktemp("large") / "state.db", SystemClock())
    async with an_installation(store=store) as place:
        _, opened = await place.directory.open("local")
        kept = await opened.results.keep(document().encode(), is_json=True)
        assert kept.is_stored
        assert kept.size > 50 * MIB
        yield LargeResult(opened, kept.handle)
    await store.close()


async def read(large: LargeResult, **arguments: object) -> dict[str, object]:
    asked = {"name": "read_result", "arguments": {"handle": large.handle, **arguments}}
    return dict((await call_tool(asked, large.session))["structuredContent"])


@pytest.mark.alone
async def test_a_search_in_a_result_of_50_mb_returns_within_a_second(large: LargeResult) -> None:
    best = 10.0
    for _ in range(3):
        began = perf_counter()
        found = await read(large, grep='"needle"')
        best = min(best, perf_counter() - began)
        assert [line["line"] for line in found["lines"]] == [ROWS + 2]  # type: ignore[attr-defined]
    record_figure(f"a grep over 50 MB: {best * 1000:.0f} ms")
    assert best < 1.0


@pytest.mark.parametrize(
    ("arguments", "most"),
    [({"offset": 30 * MIB}, 2), ({"grep": '"needle"'}, 8), ({"grep": "x{50}.*y"}, 8)],
    ids=["a part", "a grep", "a grep that finds nothing"],
)
async def test_reading_a_large_result_uses_little_memory(
    large: LargeResult, arguments: dict[str, object], most: int
) -> None:
    tracemalloc.start()
    try:
        await read(large, **arguments)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    record_figure(f"{arguments} in 50 MB: {peak / MIB:.1f} MiB at most")
    assert peak < most * MIB


async def test_a_path_query_uses_memory_for_a_few_copies_of_the_text_and_releases_it(large: LargeResult) -> None:
    tracemalloc.start()
    try:
        found = await read(large, jsonpath="$.rows[-1]")
        left, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert json.dumps(found["values"]) == json.dumps([{"path": f"$.rows[{ROWS}]", "value": {"id": "needle"}}])
    record_figure(f"a path in 50 MB: {peak / MIB:.0f} MiB at most, {left / MIB:.1f} left")
    assert peak < 5 * 52 * MIB
    assert left < 2 * MIB
