"""Timers deliver messages later."""

from typing import Any

import pytest

from emceepee.state.limits import Limits
from support.fakes.clock import settle
from support.sessions.asking import events, hush
from support.sessions.scene import Scene, a_scene


async def fired(scene: Scene) -> list[Any]:
    """The data of the timers that fired since the last reply."""
    told = await events(scene)
    assert {event["type"] for event in told} <= {"timer_expired"}
    assert {event["server"] for event in told} <= {"emceepee"}
    return [event["data"] for event in told]


async def test_a_timer_delivers_its_message_once() -> None:
    async with a_scene() as scene:
        timer = await scene.value("set_timer", duration_ms=60_000, message="tea")
        assert timer == {
            "timerId": timer["timerId"],
            "message": "tea",
            "durationMs": 60_000,
            "interval": False,
            "createdAt": "2026-01-01T00:00:00.000Z",
            "expiresAt": "2026-01-01T00:01:00.000Z",
        }
        await scene.clock.advance(59.9)
        assert await fired(scene) == []
        await scene.clock.advance(0.2)
        assert await fired(scene) == [{"timerId": timer["timerId"], "message": "tea"}]
        await scene.clock.advance(3600)
        assert await fired(scene) == []


async def test_a_timer_wakes_waiting_callers() -> None:
    async with a_scene() as scene:
        await scene.value("set_timer", duration_ms=1, message="now")
        wait = scene.start("await_activity")
        await scene.clock.advance(0.01)
        assert (await wait)["structuredContent"]["triggers"] == [
            {"type": "event", "server": "emceepee", "eventType": "timer_expired"}
        ]


async def test_timers_fire_in_the_order_of_their_due_times() -> None:
    async with a_scene() as scene:
        for duration in (30_000, 10_000, 20_000):
            await scene.value("set_timer", duration_ms=duration, message=str(duration))
        for expected in ("10000", "20000", "30000"):
            await scene.clock.advance(10.001)
            assert [data["message"] for data in await fired(scene)] == [expected]


async def test_an_interval_timer_fires_repeatedly_until_it_is_deleted() -> None:
    async with a_scene() as scene:
        timer = await scene.value("set_timer", duration_ms=1000, message="tick", interval=True)
        await scene.clock.advance(3.5)
        assert await fired(scene) == [
            {"timerId": timer["timerId"], "message": "tick", "fireCount": count, "interval": True}
            for count in (1, 2, 3)
        ]
        shown = await scene.value("get_timer", timer_id=timer["timerId"])
        assert (shown["status"], shown["fireCount"], shown["expiresAt"]) == ("active", 3, "2026-01-01T00:00:04.000Z")
        await scene.value("delete_timer", timer_id=timer["timerId"])
        await scene.clock.advance(10)
        assert await fired(scene) == []


async def test_an_interval_timer_that_was_missed_during_sleep_of_the_machine_fires_once() -> None:
    async with a_scene() as scene:
        await scene.value("set_timer", duration_ms=1000, message="tick", interval=True)
        scene.clock.sleep_through(3600)
        await settle()
        assert [data["fireCount"] for data in await fired(scene)] == [1]
        await scene.clock.advance(1.001)
        assert [data["fireCount"] for data in await fired(scene)] == [2]


async def test_a_deleted_timer_is_shown_with_its_body_and_never_fires() -> None:
    async with a_scene() as scene:
        timer = await scene.value("set_timer", duration_ms=5000, message="tea")
        deleted = await scene.value("delete_timer", timer_id=timer["timerId"])
        assert (deleted["timer"]["message"], deleted["timer"]["status"]) == ("tea", "deleted")
        await scene.clock.advance(10)
        assert await fired(scene) == []
        error = await scene.error("delete_timer", timer_id=timer["timerId"])
        assert (error["code"], "deleted already" in error["message"]) == ("ERR_TIMER_NOT_FOUND", True)


async def test_finished_timers_are_listed_on_request_and_deleted_after_five_minutes() -> None:
    async with a_scene() as scene:
        active = await scene.value("set_timer", duration_ms=86_400_000, message="tomorrow")
        done = await scene.value("set_timer", duration_ms=1000, message="soon")
        await scene.clock.advance(2)
        await hush(scene)

        async def listed(**filters: Any) -> list[str]:
            return [timer["timerId"] for timer in (await scene.value("list_timers", **filters))["timers"]]

        assert await listed() == [active["timerId"]]
        assert await listed(include_inactive=True) == [active["timerId"], done["timerId"]]
        assert (await scene.value("get_timer", timer_id=done["timerId"]))["status"] == "expired"
        await scene.clock.advance(300)
        assert await listed(include_inactive=True) == [active["timerId"]]
        for tool in ("get_timer", "delete_timer"):
            error = await scene.error(tool, timer_id=done["timerId"])
            assert (error["code"], "list_timers" in error["message"]) == ("ERR_TIMER_NOT_FOUND", True)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"duration_ms": 0, "message": "x"}, "duration_ms"),
        ({"duration_ms": -1, "message": "x"}, "duration_ms"),
        ({"duration_ms": 86_400_001, "message": "x"}, "duration_ms"),
        ({"duration_ms": 10**30, "message": "x"}, "duration_ms"),
        ({"duration_ms": "long", "message": "x"}, "duration_ms"),
        ({"duration_ms": 999, "message": "x", "interval": True}, "duration_ms"),
        ({"duration_ms": 1000, "message": ""}, "message"),
        ({"duration_ms": 1000, "message": "x" * 501}, "message"),
        ({"duration_ms": 1000}, "message"),
    ],
)
async def test_an_invalid_timer_is_rejected_with_the_name_of_the_argument(
    arguments: dict[str, Any], named: str
) -> None:
    async with a_scene() as scene:
        error = await scene.error("set_timer", **arguments)
        assert (error["code"], named in error["message"]) == ("ERR_INVALID_ARGUMENTS", True)
        assert await scene.value("list_timers", include_inactive=True) == {"timers": []}


async def test_timers_of_the_shortest_and_longest_duration_and_the_longest_message_are_accepted() -> None:
    async with a_scene() as scene:
        for arguments in (
            {"duration_ms": 1, "message": "x"},
            {"duration_ms": 86_400_000, "message": "x" * 500},
            {"duration_ms": 1000, "message": "x", "interval": True},
        ):
            assert "timerId" in await scene.value("set_timer", **arguments)


async def test_a_hundred_timers_may_be_active_and_a_finished_one_makes_room() -> None:
    async with a_scene() as scene:
        first = await scene.value("set_timer", duration_ms=60_000, message="x")
        for _ in range(99):
            await scene.value("set_timer", duration_ms=60_000, message="x")
        error = await scene.error("set_timer", duration_ms=60_000, message="x")
        assert (error["code"], "delete_timer" in error["message"]) == ("ERR_LIMIT_EXCEEDED", True)
        await scene.value("delete_timer", timer_id=first["timerId"])
        await scene.value("set_timer", duration_ms=60_000, message="x")
        await scene.clock.advance(61)
        assert len(await fired(scene)) == 100


async def test_the_longest_timer_is_the_limit_of_the_configuration() -> None:
    async with a_scene(limits=Limits(longest_timer_seconds=60)) as scene:
        assert "timerId" in await scene.value("set_timer", duration_ms=60_000, message="x")
        error = await scene.error("set_timer", duration_ms=60_001, message="x")
        assert (error["code"], "60000" in error["message"]) == ("ERR_INVALID_ARGUMENTS", True)


async def test_finished_timers_have_the_same_limit_as_active_ones() -> None:
    async with a_scene(limits=Limits(timers_per_session=3)) as scene:
        for number in range(10):
            timer = await scene.value("set_timer", duration_ms=60_000, message=f"number {number}")
            await scene.value("delete_timer", timer_id=timer["timerId"])
        listed = (await scene.value("list_timers", include_inactive=True))["timers"]
        assert [timer["message"] for timer in listed] == ["number 7", "number 8", "number 9"]
        for number in range(3):
            await scene.value("set_timer", duration_ms=1000 + number, message=f"short {number}")
        await scene.clock.advance(2)
        listed = (await scene.value("list_timers", include_inactive=True))["timers"]
        assert [timer["message"] for timer in listed] == ["short 0", "short 1", "short 2"]
