"""Whether a backend still answers."""

from hypothesis import given
from hypothesis import strategies as st

from emceepee.state.connection.health import DEGRADED_AFTER, Health, HealthStatus


def test_a_backend_is_degraded_after_three_consecutive_failures_and_shows_the_last_one() -> None:
    health = Health().failed("one").failed("two")
    assert health.status is HealthStatus.HEALTHY
    assert health.failed("three") == Health(3, "three")
    assert health.failed("three").status is HealthStatus.DEGRADED


def test_any_response_makes_a_backend_healthy_again() -> None:
    assert Health(7, "seven").answered() == Health()
    healthy = Health()
    assert healthy.answered() is healthy


@given(st.lists(st.booleans(), max_size=40))
def test_only_failures_since_the_last_response_count_toward_backend_health(answers: list[bool]) -> None:
    health = Health()
    for answered in answers:
        health = health.answered() if answered else health.failed("no answer")
    since = next((n for n, answered in enumerate(reversed(answers)) if answered), len(answers))
    assert health.failures == since
    assert (health.status is HealthStatus.DEGRADED) is (since >= DEGRADED_AFTER)
