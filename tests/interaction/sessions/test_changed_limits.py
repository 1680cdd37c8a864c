"""Limits that change while sessions are open."""

from dataclasses import replace

from emceepee.state.limits import Limits
from support.sessions.scene import a_scene


async def test_an_open_session_applies_a_changed_limit() -> None:
    limits = Limits()
    async with a_scene(limits=limits) as scene:
        await scene.value("set_timer", duration_ms=60_000, message="one")
        limits.update(replace(limits, timers_per_session=1))
        assert (await scene.error("set_timer", duration_ms=60_000, message="two"))["code"] == "ERR_LIMIT_EXCEEDED"
