"""A backend is restarted under load repeatedly: no call hangs or runs twice, and the backend recovers."""

import pytest

from support.backends.counting_http import Era
from support.faults.restarts import restarts_under_load


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_twenty_backend_restarts_under_the_load_of_eight_callers_lose_nothing_and_run_nothing_twice(
    era: Era,
) -> None:
    outcomes = await restarts_under_load(era, restarts=20)
    assert outcomes["ok"] > 20
