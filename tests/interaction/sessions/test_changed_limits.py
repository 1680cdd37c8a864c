"""Limits that change while sessions are open."""

from dataclasses import replace

from emceepee.state.limits import Limits
from support.sessions.scene import a_scene


async def test_a_session_keeps_to_a_limit_that_was_changed_under_way() -> None:
    limits = Limits()
    async with a_scene(limits=limits) as scene:
        await scene.value("set_timer", duration_ms=60_000, message="one")
        limits.update(replace(limits, timers_per_session=1))
        assert (await scene.error("set_timer", duration_ms=60_000, message="two"))["code"] == "ERR_LIMIT_EXCEEDED"
