from datetime import timedelta

from emceepee.sessions.results.result_budget import ResultBudget, weight_of
from emceepee.state.task import Task
from support.fakes.clock import START

SIZE = 1000


class Desk:
    """Records the results that were evicted."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def drop_result(self, result_id: str) -> None:
        self.gone.append(result_id)


def finished(task_id: str, size: int = SIZE) -> Task:
    working = Task(
        task_id=task_id,
        server="one",
        tool="slow",
        method="tools/call",
        arguments={},
        created_at=START,
        updated_at=START,
        ttl=timedelta(minutes=10),
        retention=timedelta(minutes=5),
    )
    return working.completed({"text": "x" * size}, START)


def keep(budget: ResultBudget, desk: Desk, task: Task) -> None:
    budget.keep(desk, task.task_id, weight_of(task))


def test_the_oldest_results_of_a_session_are_evicted_and_the_newest_stays_however_large_it_is() -> None:
    budget, desk, other = ResultBudget(100 * SIZE, 4 * SIZE), Desk(), Desk()
    keep(budget, other, finished("z"))
    for name in "abcd":
        keep(budget, desk, finished(name))
    assert (desk.gone, other.gone) == (["a"], [])
    keep(budget, desk, finished("large", 50 * SIZE))
    assert desk.gone == ["a", "b", "c", "d"]
    keep(budget, desk, finished("e"))
    assert desk.gone[4:] == ["large"]


def test_the_oldest_results_across_sessions_are_evicted_when_the_total_is_exceeded() -> None:
    budget, one, two = ResultBudget(4 * SIZE, 100 * SIZE), Desk(), Desk()
    keep(budget, one, finished("a"))
    keep(budget, two, finished("b"))
    keep(budget, two, finished("c"))
    keep(budget, two, finished("d"))
    assert (one.gone, two.gone) == (["a"], [])
    keep(budget, one, finished("e"))
    assert (one.gone, two.gone) == (["a"], ["b"])
    assert budget.used < 4 * SIZE


def test_released_results_free_their_room_in_the_budget() -> None:
    budget, one, two = ResultBudget(3 * SIZE, 3 * SIZE), Desk(), Desk()
    keep(budget, one, finished("a"))
    budget.release(one, "a")
    budget.release(one, "never there")
    keep(budget, one, finished("b"))
    keep(budget, two, finished("c"))
    budget.leave(one)
    keep(budget, two, finished("d"))
    assert (one.gone, two.gone) == ([], [])
    budget.leave(two)
    assert budget.used == 0
