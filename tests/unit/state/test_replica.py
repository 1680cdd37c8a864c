"""A process's knowledge of its own lease, by the time alone."""

import pytest

from emceepee.state.replica import STILL_SHARE, SURE_SHARE, LeaseWatch

LEASE = 10.0
SURE_UNTIL = LEASE * SURE_SHARE


@pytest.fixture
def watch() -> LeaseWatch:
    return LeaseWatch(LEASE, renewed_at=0.0, steady_since=0.0)


def look_all_the_time(watch: LeaseWatch, until: float) -> None:
    now = watch.seen_at
    while now + watch.look_every < until:
        now += watch.look_every
        watch.look(now)


def test_who_is_at_work_while_the_store_does_not_answer_did_not_stand_still(watch: LeaseWatch) -> None:
    look_all_the_time(watch, 10 * LEASE)
    assert not watch.is_sure(10 * LEASE)
    assert not watch.stood_still(10 * LEASE)


def test_who_was_not_at_work_when_its_lease_lapsed_stood_still_also_before_it_has_looked(watch: LeaseWatch) -> None:
    look_all_the_time(watch, SURE_UNTIL / 2)
    assert watch.stood_still(SURE_UNTIL + 0.1)
    watch.look(SURE_UNTIL + 0.1)
    look_all_the_time(watch, 3 * LEASE)
    assert watch.stood_still(3 * LEASE)


def test_a_pause_that_was_over_before_the_lease_lapsed_says_nothing(watch: LeaseWatch) -> None:
    watch.look(SURE_UNTIL - 0.1)
    look_all_the_time(watch, 2 * LEASE)
    assert not watch.stood_still(2 * LEASE)


def test_who_saw_the_store_go_and_stood_still_then_does_not_know_whether_it_came_back(watch: LeaseWatch) -> None:
    look_all_the_time(watch, 2 * LEASE)
    assert watch.stood_still(5 * LEASE)


def test_a_busy_machine_is_late_but_does_not_stand_still(watch: LeaseWatch) -> None:
    watch.look(SURE_UNTIL - 0.1)
    assert not watch.stood_still(SURE_UNTIL - 0.1 + LEASE * STILL_SHARE)
    assert watch.stood_still(SURE_UNTIL + LEASE * STILL_SHARE)


def test_a_renewal_ends_the_doubt(watch: LeaseWatch) -> None:
    watch.look(3 * LEASE)
    assert watch.stood_still(3 * LEASE)
    watch.renewed(3 * LEASE)
    assert not watch.stood_still(3 * LEASE)
