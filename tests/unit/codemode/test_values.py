import asyncio
import math
import threading
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.codemode.values import (
    DEEPEST,
    NODES_AT_ONCE,
    Conversions,
    NotJson,
    as_json,
    budget_of,
    excess,
    spend_json,
)
from emceepee.wire.codec import decode, encode


def converted(value: object) -> Any:
    return as_json(value, budget_of(1 << 20))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        ((1, {2}), [1, [2]]),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "(1, 2)": "c"}),
        (b"ab", "YWI="),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (timedelta(minutes=1), 60.0),
        (PurePosixPath("/a"), "/a"),
    ],
)
def test_values_without_a_json_form_are_converted(value: object, expected: object) -> None:
    assert converted(value) == expected


def test_a_script_value_too_deep_or_with_too_many_digits_is_rejected() -> None:
    deep: object = 0
    for _ in range(DEEPEST + 1):
        deep = [deep]
    for value in (deep, 10**5000):
        with pytest.raises(NotJson):
            converted(value)


@given(
    st.recursive(st.none() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner))
)
def test_every_converted_script_result_can_be_encoded(value: object) -> None:
    decode(encode(converted(value)))


class Instance:
    """An instance of a script class as the sandbox passes it."""

    def __init__(self, **attributes: object) -> None:
        self.attributes = attributes


def shared(make: Any, times: int = 60) -> Any:
    """Return a value of few objects that is immense without sharing."""
    value: Any = 1
    for _ in range(times):
        value = make(value)
    return value


@pytest.mark.parametrize(
    "value",
    [
        shared(lambda value: [value, value]),
        shared(lambda value: {"a": value, "b": value}),
        shared(lambda value: Instance(a=value, b=value)),
        {shared(lambda value: (value, value), 20): 1},
        ["x" * 100_000] * 100_000,
        [{"k" * 100_000: 1}] * 100_000,
        [b"x" * 100_000] * 100_000,
        [10**3000] * 1_000_000,
        ["\x01" * 200_000],
        ["\u20ac" * 400_000],
        [[]] * 1_000_000,
    ],
    ids=["lists", "objects", "instances", "key", "texts", "keys", "bytes", "digits", "escapes", "characters", "nodes"],
)
def test_a_value_that_is_immense_as_json_exceeds_its_budget(value: object) -> None:
    budget = budget_of(1 << 20)
    with pytest.raises(OverBudget):
        as_json(value, budget)
    assert budget.used_nodes <= budget.max_nodes + 1


def test_a_converted_value_uses_about_its_json_size_of_the_budget() -> None:
    value = {"text": ["plain", 'quoted "\n', "\u20ac"], "numbers": [1, 2.5, None, True], "\x00": [{}]}
    budget = budget_of(1000)
    as_json(value, budget)
    assert 0.5 * len(encode(value)) < budget.used_bytes < 1.5 * len(encode(value))


@given(
    st.recursive(st.none() | st.text() | st.floats(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_counting_json_values_never_counts_too_few(value: object) -> None:
    budget = budget_of(1 << 20)
    spend_json([value], budget)
    assert budget.used_nodes >= _values_in(value)


def _values_in(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_values_in, inner))


@pytest.mark.parametrize(("value", "resource"), [(list(range(2000)), "nodes"), (["x" * 2000], "bytes")])
def test_counting_json_stops_at_the_budget(value: object, resource: str) -> None:
    with pytest.raises(OverBudget) as refusal:
        spend_json(value, Budget(max_bytes=1000, max_nodes=1000))
    assert (refusal.value.resource, excess(refusal.value)) == (
        resource,
        f"more than 1000 {'values' if resource == 'nodes' else 'bytes'}",
    )


@pytest.mark.parametrize(("count", "is_here"), [(NODES_AT_ONCE - 1, True), (NODES_AT_ONCE + 1, False)])
async def test_a_large_script_value_is_converted_in_a_thread(count: int, is_here: bool) -> None:
    budget, threads = budget_of(1 << 20), []

    def convert(budget: Budget) -> int:
        as_json([0] * count, budget)
        threads.append(threading.current_thread() is threading.main_thread())
        return count

    assert await Conversions().run(convert, budget) == count
    assert (threads, budget.used_nodes) == ([is_here], count + 1)


async def test_large_script_values_are_converted_one_at_a_time() -> None:
    conversions, at_once, most = Conversions(), [0], [0]
    entered = threading.Event()

    def convert(budget: Budget) -> None:
        budget.spend(0, NODES_AT_ONCE + 1)
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        entered.wait(0.01)
        at_once[0] -= 1

    await asyncio.gather(*[conversions.run(convert, budget_of(1 << 20)) for _ in range(3)])
    assert most == [1]


@pytest.mark.parametrize(("value", "resource"), [([0] * 500_000, "nodes"), (["x" * (1 << 22)], "bytes")])
async def test_an_exceeded_budget_reports_the_whole_limit(value: object, resource: str) -> None:
    budget = budget_of(1 << 22)
    budget.spend(1 << 19)
    with pytest.raises(OverBudget) as refusal:
        await Conversions().run(lambda budget: as_json(value, budget), budget)
    most = {"nodes": budget.max_nodes, "bytes": budget.max_bytes}
    assert (refusal.value.resource, refusal.value.limit) == (resource, most[resource])
