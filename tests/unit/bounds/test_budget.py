"""A budget stops a conversion of untrusted data while it runs."""

import pytest

from emceepee.bounds.budget import NODES_PER_CLOCK_READING, Budget, OverBudget


def test_a_budget_may_be_used_up_to_its_limits() -> None:
    budget = Budget(max_bytes=10, max_nodes=3)
    for size in (4, 6, 0):
        budget.spend(size)
    assert (budget.used_bytes, budget.used_nodes) == (10, 3)


@pytest.mark.parametrize(("sizes", "resource"), [((4, 7), "bytes"), ((0, 0, 0, 0), "nodes")], ids=["bytes", "nodes"])
def test_the_first_value_beyond_a_budget_limit_stops_the_conversion(sizes: tuple[int, ...], resource: str) -> None:
    budget = Budget(max_bytes=10, max_nodes=3)
    for size in sizes[:-1]:
        budget.spend(size)
    with pytest.raises(OverBudget) as caught:
        budget.spend(sizes[-1])
    assert caught.value.resource == resource


def test_several_nodes_can_be_charged_to_a_budget_at_once() -> None:
    with pytest.raises(OverBudget, match="more than 3 nodes"):
        Budget(max_bytes=10, max_nodes=3).spend(nodes=4)


def test_the_time_of_a_budget_starts_with_its_first_use_and_stops_the_conversion() -> None:
    now = 100.0
    budget = Budget(max_bytes=0, max_nodes=1_000_000, seconds=0.5, now=lambda: now)
    now = 200.0  # time spent in a queue
    budget.spend()
    now = 200.4
    budget.spend(nodes=NODES_PER_CLOCK_READING)
    now = 200.6
    with pytest.raises(OverBudget, match="seconds"):
        _spend_nodes(budget, NODES_PER_CLOCK_READING)


def _spend_nodes(budget: Budget, count: int) -> None:
    for _ in range(count):
        budget.spend()
