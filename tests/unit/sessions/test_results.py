from datetime import timedelta

from emceepee.sessions.results import ResultBudget
from emceepee.state.task import Task
from support.fakes.clock import START

SIZE = 1000


class Desk:
    """Remembers whose results it had to let go."""

    def __init__(self) -> None:
        self.gone: list[str] = []

    def drop_result(self, task_id: str) -> None:
        self.gone.append(task_id)


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


def test_the_oldest_of_a_session_give_way_and_the_newest_stays_however_large_it_is() -> None:
    budget, desk, other = ResultBudget(100 * SIZE, 4 * SIZE), Desk(), Desk()
    budget.keep(other, finished("z"))
    for name in "abcd":
        budget.keep(desk, finished(name))
    assert (desk.gone, other.gone) == (["a"], [])
    budget.keep(desk, finished("large", 50 * SIZE))
    assert desk.gone == ["a", "b", "c", "d"]
    budget.keep(desk, finished("e"))
    assert desk.gone[4:] == ["large"]


def test_in_all_the_oldest_give_way_whosever_they_are() -> None:
    budget, one, two = ResultBudget(4 * SIZE, 100 * SIZE), Desk(), Desk()
    budget.keep(one, finished("a"))
    budget.keep(two, finished("b"))
    budget.keep(two, finished("c"))
    budget.keep(two, finished("d"))
    assert (one.gone, two.gone) == (["a"], [])
    budget.keep(one, finished("e"))
    assert (one.gone, two.gone) == (["a"], ["b"])
    assert budget.used < 4 * SIZE


def test_what_is_forgotten_leaves_room() -> None:
    budget, one, two = ResultBudget(3 * SIZE, 3 * SIZE), Desk(), Desk()
    budget.keep(one, finished("a"))
    budget.release(one, "a")
    budget.release(one, "never there")
    budget.keep(one, finished("b"))
    budget.keep(two, finished("c"))
    budget.leave(one)
    budget.keep(two, finished("d"))
    assert (one.gone, two.gone) == ([], [])
    budget.leave(two)
    assert budget.used == 0
