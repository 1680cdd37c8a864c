"""Large results that are expensive to outline and search delay no other caller."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from support.backends.big_backend import big_backend
from support.callers.cost_for_others import BOUND, LONGEST_WAIT, MOST_GROWTH, Cost, cost_for_others
from support.callers.emceepee_process import configured
from support.callers.http_process import HttpProcess, http_process
from support.figures import record_figure
from support.matrix import matrix

pytestmark = pytest.mark.asyncio(loop_scope="module")
SIZE = 24_000_000  # bytes
MOST_BYTES = 2000
ALL, MISSING = "$[*][*]", "$[*].missing"
EARLY, NOTHING = "The search ended after", '"values":[]'


@dataclass(frozen=True, slots=True)
class Hostile:
    """A text, what its outline says, and what each path in it leads to."""

    text: str
    shape: str
    found: dict[str, str]


def fill(part: str, begin: str = "[", end: str = "1]") -> str:
    return begin + part * (SIZE // len(part)) + end


def wide_object() -> str:
    return "{" + ",".join(f'"key{number}":{number}' for number in range(1_600_000)) + "}"


def object_tree() -> str:
    tree = (f'"{one}":{{' + ",".join(f'"{two}":[1,[2]]' for two in range(1200)) + "}" for one in range(1200))
    return "{" + ",".join(tree) + "}"


def long_keys() -> str:
    return "{" + ",".join(f'"{number}{"k" * 100_000}":[1]' for number in range(240)) + "}"


VALUES = "[0]" * 150
# Each is made when its test runs, as all of them would be large.
HOSTILE: dict[str, Callable[[], Hostile]] = {
    "a wide object": lambda: Hostile(
        wide_object(), "{key0: number, ", {"$.*.*": NOTHING, "$.missing": "has the keys key0"}
    ),
    "a wide list": lambda: Hostile(fill("1,"), "[number x", {ALL: EARLY, "$[-1]": EARLY}),
    "a list of empty lists": lambda: Hostile(fill("[],"), "[[] x", {ALL: EARLY, MISSING: EARLY}),
    "short texts": lambda: Hostile(fill('"ab",'), "[string x", {ALL: EARLY, "$[4000000:]": EARLY}),
    "deep lists": lambda: Hostile(fill("1,", "[" * 180, "1" + "]" * 180), "[[[[[[[… x1] x1]", {f"${VALUES}": EARLY}),
    "lists too deep to be read": lambda: Hostile("[" * SIZE, "text, 1 lines", {}),
    "many deep lists": lambda: Hostile(fill("[" * 60 + "]" * 60 + ","), "[[[[[[[…", {"$" + "[*]" * 60: '"value":[]'}),
    "deep objects": lambda: Hostile(
        fill("1,", '{"a":' * 180 + "[", "1]" + "}" * 180), "{a: {a: {a:", {"$" + ".*" * 180: EARLY}
    ),
    "objects in objects": lambda: Hostile(object_tree(), "{0: {…}, 1: {…}", {"$.*.*.missing": NOTHING}),
    "a long key": lambda: Hostile(f'{{"{"k" * SIZE}":[1]}}', "{kkkkkkk", {"$.*[*]": "kkk", "$.x": "has the keys kkk"}),
    "long keys": lambda: Hostile(long_keys(), "{0kkk", {"$.*.*": "kkk"}),
    "one long text": lambda: Hostile(
        json.dumps(["\n" * (SIZE // 2)]), "[string x1]", {"$[0]": '"bytes":', ALL: "neither"}
    ),
    "blanks": lambda: Hostile("[1" + " " * SIZE + ",[2]]", "[number | [number x1] x2]", {ALL: '"value":2'}),
}
SLOW = ("a wide list", "a list of empty lists", "short texts", "objects in objects")  # searches that reach their limit
QUICK = [what for what in HOSTILE if what not in SLOW]


def result(text: str) -> str:
    return json.dumps({"content": [{"type": "text", "text": text}]})


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def results() -> dict[str, str]:
    """The bodies that the backend answers with: they are filled by each test, as all of them would be large."""
    return {"echo": '{"content":[]}'}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint(results: dict[str, str]) -> AsyncIterator[HttpProcess]:
    async with big_backend(results) as url, http_process(env=configured({"big": {"url": url}})) as running:
        caller = await running.caller()
        await caller.call("execute_tool", server="big", tool="echo", args={})
        yield running


async def cost_of_plain_text(size: int, results: dict[str, str], endpoint: HttpProcess) -> Cost:
    """Return the memory for receiving and storing a text of that size."""
    results["plain"] = result("x" * size)
    caller = await endpoint.caller()
    with cost_for_others(endpoint) as cost:
        await caller.call("execute_tool", server="big", tool="plain", args={}, max_bytes=MOST_BYTES)
    return cost


@pytest.mark.alone
@pytest.mark.parametrize("what", matrix(HOSTILE, representatives=QUICK))
async def test_a_hostile_result_delays_no_other_caller(
    what: str, results: dict[str, str], endpoint: HttpProcess
) -> None:
    hostile = HOSTILE[what]()
    results["hostile"] = result(hostile.text)
    plain = await cost_of_plain_text(len(results["hostile"]), results, endpoint)
    caller = await endpoint.caller()
    with cost_for_others(endpoint) as cost:
        began = time.monotonic()
        async with asyncio.timeout(BOUND):
            got: dict[str, Any] = await caller.call(
                "execute_tool", server="big", tool="hostile", args={}, max_bytes=MOST_BYTES
            )
        took = time.monotonic() - began
    large = got["structuredContent"]["large_result"]
    record_figure(
        f"{what}: the longest wait of another {cost.longest_wait * 1000:.0f} ms "
        f"({plain.longest_wait * 1000:.0f} ms if the text is plain), memory "
        f"{(cost.growth - plain.growth) >> 20:+} MiB (promised: 250 ms, 64 MiB), the outline took {took:.1f} s"
    )
    assert hostile.shape in large["shape"]
    assert cost.longest_wait < LONGEST_WAIT
    assert cost.growth - plain.growth < MOST_GROWTH
    for path, told in hostile.found.items():
        with cost_for_others(endpoint) as cost:
            began = time.monotonic()
            async with asyncio.timeout(BOUND):
                part = await caller.call("read_result", handle=large["handle"], jsonpath=path)
            took = time.monotonic() - began
        record_figure(
            f"{what}, {path[:20]}: the longest wait of another {cost.longest_wait * 1000:.0f} ms, memory "
            f"{cost.growth >> 20:+} MiB of {len(hostile.text) >> 20} MiB (promised: 250 ms, 64 MiB), {took:.1f} s"
        )
        assert told in part["content"][0]["text"], path
        assert cost.longest_wait < LONGEST_WAIT
        assert cost.growth < len(hostile.text) + MOST_GROWTH
