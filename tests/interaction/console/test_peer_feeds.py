"""A page receives the sessions of all replicas in one feed."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from emceepee.console.feed import BATCH_SECONDS, READY_SECONDS, Feed
from emceepee.console.peer_feeds import FIRST_PAUSE, LINGER_SECONDS, LONGEST_PAUSE, LOST, MOST_WAITING, SILENCE_SECONDS
from emceepee.state.limits import Limits
from emceepee.web.streams import PING
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.fakes.peer_consoles import FakePeer, FakePeers
from support.fakes.session_source import SessionSource
from support.sessions.scene import Scene, a_scene

Told = tuple[str, Any]


class Page:
    """Reads a feed in the background."""

    def __init__(self, scene: Scene, peers: FakePeers) -> None:
        self.scene, self.peers = scene, peers
        self.source = SessionSource(scene.session)
        self.feed = Feed(self.source, "local", scene.clock, Limits(), peers)
        self.may_read = asyncio.Event()
        self.may_read.set()
        self._told: list[Told] = []
        self.reader = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for frame in self.feed.frames():
            await self.may_read.wait()
            if frame != PING:
                name, data = frame.decode().strip().split("\n")
                self._told.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))

    async def told(self, after: float = BATCH_SECONDS) -> list[Told]:
        """Return the messages since the last call and of the next turns."""
        await settle()
        await self.scene.clock.advance(after)
        await settle()
        told, self._told = self._told, []
        return told

    async def sessions(self, after: float = BATCH_SECONDS) -> list[tuple[str, str]]:
        """Return the messages about sessions of other replicas."""
        own = self.scene.session.session_id
        return [
            (name, data["id"])
            for name, data in await self.told(after)
            if name.startswith("session") and data["id"] != own
        ]


@asynccontextmanager
async def a_page(*peers: FakePeer) -> AsyncIterator[Page]:
    async with a_scene(one=ScriptedBackend()) as scene:
        page = Page(scene, FakePeers(*peers))
        try:
            yield page
        finally:
            page.reader.cancel()
            await asyncio.wait([page.reader])
            assert page.peers.watchers == []
            assert page.peers.open_feeds == 0


@pytest.fixture
def other() -> FakePeer:
    return FakePeer("2.5")


def names(told: list[Told]) -> list[str]:
    return [name for name, _ in told]


async def test_state_of_other_replicas_arrives_before_the_page_is_ready_and_without_their_start_markers(
    other: FakePeer,
) -> None:
    other.tell("hello", version="0")
    other.tell("session", id="theirs")
    other.tell("requests", rows=[])
    async with a_page(other) as page:
        assert names(await page.told(0)) == ["hello", "session", "events", "session", "requests"]
        other.tell("ready")
        assert names(await page.told(0)) == ["ready"]
        assert page.peers.principals == {"local"}


async def test_with_one_replica_a_page_is_ready_at_once() -> None:
    async with a_page() as page:
        assert names(await page.told(0)) == ["hello", "session", "events", "ready"]


async def test_a_page_waits_only_briefly_for_a_slow_replica(other: FakePeer) -> None:
    async with a_page(other) as page:
        assert "ready" not in names(await page.told(READY_SECONDS / 2))
        assert names(await page.told(READY_SECONDS / 2)) == ["ready"]
        other.tell_all("theirs")
        assert await page.sessions() == [("session", "theirs")]


async def test_a_page_does_not_wait_for_an_unreachable_replica(other: FakePeer) -> None:
    other.break_off()
    async with a_page(other) as page:
        assert names(await page.told(0))[-1] == "ready"


async def test_local_changes_are_sent_while_the_page_waits_for_other_replicas(other: FakePeer) -> None:
    async with a_page(other) as page:
        await page.told(0)
        await page.scene.value("set_timer", duration_ms=60_000, message="tea")
        assert "session" in names(await page.told(0))


async def test_events_of_another_replica_are_passed_on_unchanged(other: FakePeer) -> None:
    other.tell_all()
    async with a_page(other) as page:
        await page.told()
        told: list[Told] = [
            ("session", {"id": "theirs", "anything": [1, None, "ü"]}),
            ("requests", {"rows": [{"id": "r", "status": "success"}]}),
            ("events", {"events": [{"id": "e"}]}),
            ("logs", {"logs": [{"data": "a line"}]}),
            ("session_gone", {"id": "theirs"}),
        ]
        for name, data in told:
            other.tell(name, **data)
        other.write(PING)
        assert await page.told() == told


async def test_a_page_subscribes_to_a_replica_that_joins_later(other: FakePeer) -> None:
    async with a_page() as page:
        await page.told()
        other.tell_all("theirs")
        page.peers.come(other)
        assert await page.sessions() == [("session", "theirs")]
        assert page.feed.reporters.reporter_of("theirs") == other.name


async def test_the_sessions_of_a_lost_replica_disappear_after_a_delay(other: FakePeer) -> None:
    other.tell_all("one", "two")
    async with a_page(other) as page:
        await page.told()
        page.peers.go(other)
        assert await page.sessions(LINGER_SECONDS / 2) == []
        assert await page.sessions(LINGER_SECONDS) == [("session_gone", "one"), ("session_gone", "two")]
        assert "2.5" not in repr(page.feed._others)


async def test_a_session_that_another_replica_took_over_stays_on_the_page(other: FakePeer) -> None:
    third = FakePeer("3.6")
    other.tell_all("theirs")
    third.tell_all()
    async with a_page(other, third) as page:
        await page.told()
        page.peers.go(other)
        third.tell("session", id="theirs", of=third.name)
        assert await page.sessions() == [("session", "theirs")]
        assert await page.sessions(2 * LINGER_SECONDS) == []
        assert page.feed.reporters.reporter_of("theirs") == third.name


async def test_a_session_that_moves_from_or_to_the_local_replica_stays_on_the_page(other: FakePeer) -> None:
    other.tell_all()
    async with a_page(other) as page:
        own = page.scene.session.session_id
        await page.told()
        other.tell("session", id=own, of=other.name)
        assert names(await page.told()) == ["session"]
        page.source.leave(page.scene.session)
        assert await page.told() == []
        page.source.enter(page.scene.session)
        other.tell("session_gone", id=own)
        assert "session_gone" not in names(await page.told())


async def test_late_messages_of_the_old_holder_of_a_session_are_ignored(other: FakePeer) -> None:
    other.tell_all()
    async with a_page(other) as page:
        own = page.scene.session.session_id
        await page.told()
        other.tell("session", id=own, of=other.name)
        await page.told()
        await page.scene.value("set_timer", duration_ms=60_000, message="tea")
        assert names(await page.told()) == ["requests"]


async def test_a_feed_that_breaks_off_is_reopened_without_flicker(other: FakePeer) -> None:
    other.tell_all("kept", "gone")
    async with a_page(other) as page:
        await page.told()
        other.break_off()
        await settle()
        other.tell("hello")
        other.tell("session", id="kept", of=other.name)
        other.tell("logs", logs=[{"data": "told before"}])
        other.tell("ready")
        other.tell("logs", logs=[{"data": "new"}])
        told = await page.told(FIRST_PAUSE + 2 * BATCH_SECONDS)
        assert told == [
            ("session", {"id": "kept", "of": "2.5"}),
            ("session_gone", {"id": "gone"}),
            ("logs", {"logs": [{"data": "new"}]}),
        ]
        assert await page.sessions(2 * LINGER_SECONDS) == []


async def test_a_feed_that_never_opens_is_retried_less_and_less_often(other: FakePeer) -> None:
    async with a_page(other) as page:
        for _ in range(1000):
            other.break_off()
        await page.told(10 * LONGEST_PAUSE)
        assert 10 <= other.opened <= 16


async def test_a_silent_feed_is_taken_for_dead_and_reopened(other: FakePeer) -> None:
    other.tell_all("theirs")
    async with a_page(other) as page:
        await page.told()
        for _ in range(3):
            other.write(PING)
            await page.told(SILENCE_SECONDS - 1)
        assert other.opened == 1
        assert await page.sessions(SILENCE_SECONDS + LINGER_SECONDS) == [("session_gone", "theirs")]
        assert other.opened > 1


async def test_running_requests_of_a_lost_replica_are_shown_as_failed(other: FakePeer) -> None:
    other.tell_all()
    async with a_page(other) as page:
        begun = {"status": "pending", "startedAt": 5.0, "name": "dig"}
        other.tell("requests", rows=[begun | {"id": "a"}, begun | {"id": "b"}])
        other.tell("requests", rows=[begun | {"id": "a", "status": "success"}])
        await page.told()
        page.peers.go(other)
        [(name, data)] = await page.told(2 * LINGER_SECONDS)
        [row] = data["rows"]
        assert (name, row["id"], row["status"], row["error"]) == ("requests", "b", "error", LOST)
        assert row["endedAt"] > row["startedAt"]


async def test_a_page_that_does_not_read_pauses_the_feed_of_the_other_replica(other: FakePeer) -> None:
    other.tell_all()
    async with a_page(other) as page:
        await page.told()
        page.may_read.clear()
        size = MOST_WAITING // 10
        for number in range(50):
            other.tell("logs", logs=[{"data": "x" * size, "number": number}])
        await page.told(5)
        assert other.unread > 25
        page.may_read.set()
        numbers = [data["logs"][0]["number"] for _ in range(10) for _, data in await page.told()]
        assert numbers == list(range(50))


async def test_invalid_data_of_a_replica_does_not_break_the_page(other: FakePeer) -> None:
    other.tell_all("theirs")
    async with a_page(other) as page:
        await page.told()
        for nonsense in (b"?\n\n", b"event: session\ndata: {}\n\n", b'event: requests\ndata: {"rows": [1]}\n\n'):
            other.write(nonsense)
        other.tell("session", id="theirs", of="again")
        assert await page.sessions() == [("session", "theirs")]
