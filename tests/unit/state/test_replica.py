"""Knowledge of a process about its own lease, from the time alone."""

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


def test_a_replica_that_keeps_running_while_the_store_is_unreachable_was_not_suspended(watch: LeaseWatch) -> None:
    look_all_the_time(watch, 10 * LEASE)
    assert not watch.is_sure(10 * LEASE)
    assert not watch.stood_still(10 * LEASE)


def test_a_replica_that_was_not_running_when_its_lease_lapsed_was_suspended_even_before_it_checks(
    watch: LeaseWatch,
) -> None:
    look_all_the_time(watch, SURE_UNTIL / 2)
    assert watch.stood_still(SURE_UNTIL + 0.1)
    watch.look(SURE_UNTIL + 0.1)
    look_all_the_time(watch, 3 * LEASE)
    assert watch.stood_still(3 * LEASE)


def test_a_pause_that_ended_before_the_lease_lapsed_does_not_count_as_suspended(watch: LeaseWatch) -> None:
    watch.look(SURE_UNTIL - 0.1)
    look_all_the_time(watch, 2 * LEASE)
    assert not watch.stood_still(2 * LEASE)


def test_a_replica_that_is_suspended_after_its_lease_lapsed_counts_as_suspended(watch: LeaseWatch) -> None:
    look_all_the_time(watch, 2 * LEASE)
    assert watch.stood_still(5 * LEASE)


def test_a_busy_replica_runs_late_but_does_not_count_as_suspended(watch: LeaseWatch) -> None:
    watch.look(SURE_UNTIL - 0.1)
    assert not watch.stood_still(SURE_UNTIL - 0.1 + LEASE * STILL_SHARE)
    assert watch.stood_still(SURE_UNTIL + LEASE * STILL_SHARE)


def test_a_lease_renewal_clears_the_suspension_of_a_replica(watch: LeaseWatch) -> None:
    watch.look(3 * LEASE)
    assert watch.stood_still(3 * LEASE)
    watch.renewed(3 * LEASE)
    assert not watch.stood_still(3 * LEASE)
