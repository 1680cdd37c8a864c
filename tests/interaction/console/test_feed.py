"""A page receives the complete state once, then only changes, and nothing about other people's sessions."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from emceepee.console.feed import BATCH_SECONDS, LONGEST_SECONDS, Feed
from emceepee.console.rows import SHOWN_LINE_BYTES
from emceepee.state.limits import Limits
from emceepee.web.streams import PING, PING_SECONDS
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.fakes.session_source import SessionSource
from support.figures import record_figure
from support.sessions.another_session import another_session
from support.sessions.asking import elicit
from support.sessions.scene import Scene, a_scene

Told = tuple[str, Any]


class Page:
    """Reads a feed in the background."""

    def __init__(self, feed: Feed, scene: Scene) -> None:
        self._scene = scene
        self._told: list[Told] = []
        self.pings = 0
        self._reader = asyncio.create_task(self._read(feed))

    async def _read(self, feed: Feed) -> None:
        async for frame in feed.frames():
            if frame == PING:
                self.pings += 1
                continue
            name, data = frame.decode().strip().split("\n")
            self._told.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))

    async def told(self) -> list[Told]:
        """Return the messages since the last call, including the time of a batch."""
        await settle()
        await self._scene.clock.advance(BATCH_SECONDS)
        await settle()
        told, self._told = self._told, []
        return told

    async def close(self) -> None:
        self._reader.cancel()
        await asyncio.wait([self._reader])

    @property
    def is_over(self) -> bool:
        return self._reader.done()


@asynccontextmanager
async def a_page(scene: Scene, house: SessionSource | None = None, *, principal: str = "local") -> AsyncIterator[Page]:
    feed = Feed(house or SessionSource(scene.session), principal, scene.clock, Limits())
    page = Page(feed, scene)
    try:
        yield page
    finally:
        await page.close()


def names(told: list[Told]) -> list[str]:
    return [name for name, _ in told]


async def test_a_page_first_receives_the_complete_state() -> None:
    async with a_scene(one=ScriptedBackend(is_process=True)) as scene:
        scene.backends["one"].link.listener.handle_output("hello", "stderr")
        await scene.value("list_servers")
        async with a_page(scene) as page:
            told = await page.told()
        assert names(told) == ["hello", "session", "requests", "events", "logs", "ready"]
        by_name = dict(told)
        assert by_name["hello"]["principal"] == "local"
        session = by_name["session"]
        assert session["id"] == scene.session.session_id
        assert [(server["name"], server["status"], server["process"]["pid"]) for server in session["servers"]] == [
            ("one", "connected", 101)
        ]
        assert [row["name"] for row in by_name["requests"]["rows"]] == ["list_servers"]
        assert [line["data"] for line in by_name["logs"]["logs"]] == ["hello"]


async def test_after_the_first_state_a_page_receives_each_change_once() -> None:
    async with a_scene(one=ScriptedBackend()) as scene, a_page(scene) as page:
        await page.told()
        assert await page.told() == []
        call = scene.start("execute_tool", server="one", tool="slow")
        asked = await scene.backends["one"].next_asked()
        [(name, data)] = await page.told()
        assert (name, data["rows"][0]["status"]) == ("requests", "pending")
        scene.backends["one"].link.listener.handle_output("a line", "stderr")
        [(name, data)] = await page.told()
        assert (name, [line["data"] for line in data["logs"]]) == ("logs", ["a line"])
        asked.reply(content=[])
        await call
        [(name, data)] = await page.told()
        assert (name, data["rows"][0]["status"]) == ("requests", "success")


async def test_a_question_appears_on_the_page_and_disappears_when_the_model_answers() -> None:
    async with a_scene(one=ScriptedBackend()) as scene, a_page(scene) as page:
        await page.told()
        asking = elicit(scene.backends["one"])
        [question] = dict(await page.told())["session"]["questions"]
        assert (question["kind"], question["server"], question["message"]) == ("elicitation", "one", "Your name?")
        scene.session.questions.answer_elicitation(question["requestId"], "decline", None)
        await asking
        assert dict(await page.told())["session"]["questions"] == []


async def test_timers_progress_and_connection_states_reach_the_page_though_they_raise_no_events() -> None:
    async with a_scene(one=ScriptedBackend()) as scene, a_page(scene) as page:
        await page.told()
        await scene.value("set_timer", duration_ms=60_000, message="tea")
        assert [timer["message"] for timer in dict(await page.told())["session"]["timers"]] == ["tea"]
        scene.backends["one"].opens = asyncio.get_running_loop().create_future()
        reconnecting = scene.start("reconnect_server", name="one")
        await settle()
        assert dict(await page.told())["session"]["servers"][0]["status"] == "connecting"
        scene.backends["one"].opens.set_result(None)
        await reconnecting


async def test_sessions_appear_on_the_page_and_disappear_from_it() -> None:
    async with a_scene(one=ScriptedBackend()) as scene, another_session(scene) as other:
        house = SessionSource(scene.session)
        async with a_page(scene, house) as page:
            await page.told()
            house.enter(other)
            assert dict(await page.told())["session"]["id"] == other.session_id
            house.leave(other)
            assert await page.told() == [("session_gone", {"id": other.session_id})]


async def test_a_page_receives_nothing_about_sessions_of_other_principals() -> None:
    async with a_scene(one=ScriptedBackend()) as scene, a_page(scene, principal="someone else") as page:
        await scene.value("list_servers")
        assert names(await page.told()) == ["hello", "ready"]


async def test_an_open_page_delivers_no_events() -> None:
    async with a_scene(one=ScriptedBackend()) as scene, a_page(scene) as page:
        await page.told()
        assert "server_connected" in scene.event_types()


async def test_changes_of_elapsed_time_alone_are_not_sent_to_the_page() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene, a_page(scene) as page:
        await page.told()
        backend.opens = asyncio.get_running_loop().create_future()
        backend.link.break_off("gone")
        assert names(await page.told()) == ["session", "events"]
        await scene.clock.advance(0.3)
        scene.session.change_signal.notify()
        assert await page.told() == []


async def test_the_feed_forgets_a_page_that_disconnects() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        house = SessionSource(scene.session)
        async with a_page(scene, house) as page:
            await page.told()
            assert house.watchers == 1
        assert house.watchers == 0
        scene.session.change_signal.notify()  # no feed is left to notify


async def test_an_idle_feed_sends_keep_alive_lines_and_ends_after_an_hour_to_check_the_login_again() -> None:
    async with a_scene() as scene, a_page(scene) as page:
        await page.told()
        await scene.clock.advance(PING_SECONDS)
        assert page.pings == 1
        await scene.clock.advance(LONGEST_SECONDS)
        assert page.is_over


async def test_many_rows_are_split_into_several_messages() -> None:
    limits = Limits(requests_per_session=2000, requests_in_all=2000)
    async with a_scene(limits=limits) as scene:
        for _ in range(1200):
            await scene.call("list_servers")
        async with a_page(scene) as page:
            sizes = [len(data["rows"]) for name, data in await page.told() if name == "requests"]
        assert sizes == [64] * 18 + [48]


HOSTILE = '{"token": ' + '"a\\' * 20_000  # what is masked in it takes long to find


@pytest.mark.alone
async def test_long_log_lines_are_truncated_and_split_into_messages_between_which_other_tasks_run() -> None:
    async with a_scene(one=ScriptedBackend(is_process=True)) as scene:
        for _ in range(100):
            scene.backends["one"].link.listener.handle_output(HOSTILE, "stderr")
        house = SessionSource(scene.session)
        frames = Feed(house, "local", scene.clock, Limits()).frames()
        longest, turns, logs = 0.0, 0, list[Any]()

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        running = asyncio.create_task(others())
        while True:
            began, before = time.process_time(), turns
            frame = await anext(frames)
            longest = max(longest, time.process_time() - began)
            if frame.startswith(b"event: ready"):
                break
            if frame.startswith(b"event: logs"):
                assert not logs or turns > before
                logs.append(json.loads(frame.split(b"data: ")[1])["logs"])
        await frames.aclose()
        running.cancel()
    lines = [line for portion in logs for line in portion]
    assert len(logs) > 5
    assert len(lines) > 50
    assert all(len(json.dumps(line)) < 3 * SHOWN_LINE_BYTES for line in lines)
    record_figure(
        f"a message of a page that was opened beside hostile log lines: {longest * 1000:.0f} ms (wanted: 250)"
    )
    assert longest < 5 * 0.25
