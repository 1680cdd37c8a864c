"""The long versions: `make soak`. Not collected by default, because the name does not begin with test_."""

import pytest

from support.backends.counting_http import Era
from support.load import restarts_under_load
from support.waves import SESSIONS, waves_of_sessions

pytestmark = pytest.mark.timeout(1800)


async def test_a_thousand_sessions_abandoned_in_waves_leave_no_process() -> None:
    assert await waves_of_sessions(20) == 20 * 2 * SESSIONS


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_hundred_restarts_under_load_lose_nothing_and_run_nothing_twice(era: Era) -> None:
    outcomes = await restarts_under_load(era, restarts=100)
    print(f"{era}: {outcomes['ok']} calls succeeded, {outcomes['failed']} failed with a clear error")
    assert outcomes["ok"] > 100
