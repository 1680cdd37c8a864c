"""When a lost backend is tried again."""

from hypothesis import given
from hypothesis import strategies as st

from emceepee.state.connection.retry import JITTER, GiveUp, Retry, RetryCount, RetryPolicy

HTTP = RetryPolicy(base=1, multiplier=2, longest=180, stable_after=60)
PROCESS = RetryPolicy(base=1, multiplier=2, longest=60, most=5, stable_after=60)
spreads = st.floats(-1, 1)
policies = st.builds(
    RetryPolicy,
    base=st.floats(0.001, 100),
    multiplier=st.floats(1, 10),
    longest=st.floats(0.001, 1000),
    most=st.none() | st.integers(0, 20),
    stable_after=st.floats(0, 1000),
)


def test_http_retries_double_from_one_second_to_three_minutes() -> None:
    assert [HTTP.delay(attempt, 0) for attempt in range(1, 11)] == [1, 2, 4, 8, 16, 32, 64, 128, 180, 180]


def test_http_is_retried_forever() -> None:
    assert RetryCount(HTTP, attempts=100_000).next(0) == Retry(100_001, 180)


def test_a_process_is_restarted_five_times_and_then_left_stopped() -> None:
    count, delays = RetryCount(PROCESS), []
    while isinstance(decision := count.next(0), Retry):
        delays.append(decision.delay)
        count = count.tried()
    assert delays == [1, 2, 4, 8, 16]
    assert decision == GiveUp(5)


@given(policies, st.integers(1, 200), spreads)
def test_a_retry_delay_never_shrinks_and_stays_within_a_tenth_of_its_bound(
    policy: RetryPolicy, attempt: int, spread: float
) -> None:
    assert policy.delay(attempt, spread) <= policy.delay(attempt + 1, spread)
    plain = policy.delay(attempt, 0)
    assert 0 < plain <= policy.longest
    assert abs(policy.delay(attempt, spread) - plain) <= plain * JITTER * (1 + 1e-9)


@given(policies, st.lists(st.one_of(st.just("tried"), st.floats(0, 2000)), max_size=50), spreads)
def test_the_retry_budget_is_renewed_only_after_a_stable_period(
    policy: RetryPolicy, story: list[str | float], spread: float
) -> None:
    """Random attempts and losses, compared with a simple counter."""
    count, expected = RetryCount(policy), 0
    for step in story:
        if isinstance(step, float):
            count = count.after_loss(step)
            expected = 0 if step >= policy.stable_after else expected
        elif isinstance(count.next(spread), Retry):
            count, expected = count.tried(), expected + 1
        assert count.attempts == expected
        assert policy.most is None or count.attempts <= policy.most
        gives_up = policy.most is not None and expected >= policy.most
        assert isinstance(count.next(spread), GiveUp) is gives_up


def test_a_loss_just_before_the_stable_period_ends_renews_no_retries() -> None:
    spent = RetryCount(PROCESS, attempts=5)
    assert isinstance(spent.after_loss(59.999).next(0), GiveUp)
    assert spent.after_loss(60).next(0) == Retry(1, 1)
