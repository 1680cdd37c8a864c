"""Samples over time, made of the stored requests for open pages."""

from time import process_time
from typing import Any

import pytest

from emceepee.console.overview import (
    KEPT_SAMPLES,
    KEPT_SECONDS,
    MOST_PRINCIPALS,
    SAMPLE_SECONDS,
    Overview,
    joined_overview,
    overview_view,
    resident_bytes,
)
from emceepee.ids import Ulids
from emceepee.lifecycle import TaskOwner
from emceepee.state.limits import Limits
from emceepee.telemetry.journal import Journal
from emceepee.telemetry.spans import SpanKind
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.session_source import SessionSource
from support.sessions.another_session import another_session
from support.sessions.asking import elicit
from support.sessions.scene import Scene, a_scene
from support.waiting import eventually


class Looking:
    """Someone who looks at a scene."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.tasks = scene, TaskOwner("test")
        self.source = SessionSource(scene.session)
        self.overview = Overview(self.source, scene.clock, self.tasks, lambda: 5_000_000)

    def samples(self) -> list[dict[str, Any]]:
        return list(overview_view(self.overview.look("local").samples)["samples"])

    async def next_sample(self) -> dict[str, Any]:
        before = len(self.samples())
        await self.scene.clock.advance(SAMPLE_SECONDS)
        await eventually(lambda: len(self.samples()) > before, what="another sample was taken")
        return self.samples()[-1]


async def test_the_overview_samples_requests_errors_latency_and_pending_work() -> None:
    backend = ScriptedBackend()
    async with a_scene(demo=backend) as scene:
        look = Looking(scene)
        assert look.samples() == []
        await scene.clock.advance(1)
        await scene.call("list_servers")
        await scene.call("execute_tool", server="nobody", tool="echo")
        call = scene.start("execute_tool", server="demo", tool="slow")
        asked = await backend.next_asked()
        await scene.clock.advance(2)
        asked.reply(content=[])
        await call
        sample = await look.next_sample()
        assert (sample["requests"], sample["errors"], sample["waiting"]) == (3, 1, 0)
        assert (sample["slowestMs"], sample["memory"]) == (2000.0, 5_000_000)
        sample = await look.next_sample()
        assert (sample["requests"], sample["errors"], sample["slowestMs"]) == (0, 0, None)
        question = elicit(backend)
        assert (await look.next_sample())["waiting"] == 1
        question.cancel()
        await look.tasks.close()


async def test_the_overview_shows_activity_since_the_last_sample_at_once() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        look = Looking(scene)
        assert look.samples() == []
        await scene.call("list_servers")
        for _ in range(2):  # to look changes nothing
            assert [sample["requests"] for sample in look.overview.show("local")["samples"]] == [1]
        assert (await look.next_sample())["requests"] == 1
        assert [sample["requests"] for sample in look.overview.show("local")["samples"]] == [1, 0]
        await look.tasks.close()


async def test_the_overview_counts_all_requests_though_few_are_stored() -> None:
    async with a_scene(limits=Limits(requests_per_session=5), demo=ScriptedBackend()) as scene:
        look = Looking(scene)
        await scene.call("list_servers")
        await look.next_sample()
        for _ in range(30):
            await scene.call("list_servers")
        assert (await look.next_sample())["requests"] == 30
        await look.tasks.close()


async def test_the_overview_counts_the_requests_of_a_new_session_though_few_are_stored() -> None:
    limits = Limits(requests_per_session=5)
    async with a_scene(limits=limits, demo=ScriptedBackend()) as scene, another_session(scene) as other:
        look = Looking(scene)
        assert look.samples() == []
        await scene.clock.advance(1)
        for _ in range(30):
            await scene.call("list_servers")
        look.source.enter(other)
        for _ in range(20):
            other.journal.begin(SpanKind.OWN_TOOL, "list_servers", None, {})
        assert (await look.next_sample())["requests"] == 50
        await look.tasks.close()


async def test_the_overview_counts_requests_that_other_sessions_evicted() -> None:
    async with a_scene(limits=Limits(requests_in_all=5), demo=ScriptedBackend()) as scene:
        look = Looking(scene)
        assert look.samples() == []
        await scene.clock.advance(1)
        for _ in range(3):
            await scene.call("list_servers")
        journal = scene.session.journal
        other = Journal(scene.parts.journals, scene.clock, Ulids(lambda: 0), most=20, changed=lambda: None)
        for _ in range(20):
            other.begin(SpanKind.OWN_TOOL, "list_servers", None, {})
        assert journal.spans == []
        assert (await look.next_sample())["requests"] == 3
        await look.tasks.close()


async def test_the_counts_of_a_reloaded_session_continue_from_their_last_value() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        look = Looking(scene)
        assert look.samples() == []
        await scene.clock.advance(1)
        await scene.call("list_servers")
        await look.next_sample()
        look.source.leave(scene.session)
        await scene.call("list_servers")
        assert (await look.next_sample())["requests"] == 0
        look.source.enter(scene.session)
        assert (await look.next_sample())["requests"] == 1
        async with another_session(scene) as loaded:
            look.source.leave(scene.session)
            look.source.enter(loaded)
            loaded.session_id = scene.session.session_id
            loaded.journal.begin(SpanKind.OWN_TOOL, "list_servers", None, {})
            assert (await look.next_sample())["requests"] == 1
        await look.tasks.close()


async def test_sampling_an_hour_of_stored_requests_is_fast() -> None:
    async with a_scene(limits=Limits(requests_per_session=1000), demo=ScriptedBackend()) as scene:
        for _ in range(1000):
            scene.session.journal.begin(SpanKind.OWN_TOOL, "list_servers", None, {}).failed("no")
            await scene.clock.advance(3.59)
        look = Looking(scene)
        began = process_time()
        samples = look.samples()
        took = process_time() - began
        assert (len(samples), sum(sample["requests"] for sample in samples)) == (KEPT_SAMPLES, 1000)
        assert sum(sample["errors"] for sample in samples) == 1000
        assert took < 0.1, f"{took:.2f} s"
        await look.tasks.close()


async def test_stored_requests_fill_the_time_before_the_first_visit() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        await scene.call("list_servers")
        await scene.clock.advance(3 * SAMPLE_SECONDS)
        await scene.call("list_servers")
        look = Looking(scene)
        assert [sample["requests"] for sample in look.samples()] == [1, 0, 0, 1]
        assert {sample["memory"] for sample in look.samples()} == {None}
        await scene.clock.advance(5 * KEPT_SECONDS)
        await look.tasks.close()
        assert len(Looking(scene).samples()) == KEPT_SAMPLES


async def test_sampling_stops_an_hour_after_the_last_visit() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        look = Looking(scene)
        await look.next_sample()
        await scene.clock.advance(KEPT_SECONDS + SAMPLE_SECONDS)
        await eventually(lambda: len(look.tasks) == 0, what="the sampling ends")
        assert len(look.overview) == 0
        assert len(look.samples()) == 0
        assert len(look.tasks) == 1, "and begins again"
        await look.tasks.close()


async def test_the_overview_evicts_the_least_recent_visitor() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        look = Looking(scene)
        for number in range(MOST_PRINCIPALS + 5):
            look.overview.look(f"principal {number}")
        assert len(look.overview) == MOST_PRINCIPALS
        await look.tasks.close()


def a_sample(at: int, **more: Any) -> dict[str, Any]:
    return {"at": at, "requests": 1, "errors": 0, "slowestMs": None, "waiting": None, "memory": None} | more


def test_the_overview_adds_up_the_samples_of_replicas() -> None:
    own = {"sampleMs": 10_000, "samples": [a_sample(10_000), a_sample(20_000, memory=5, slowestMs=3.0)]}
    other = {"samples": [a_sample(21_000, requests=4, errors=2, memory=7, slowestMs=9.0, waiting=1), a_sample(99_000)]}
    assert joined_overview(own, [other, {}])["samples"] == [
        a_sample(10_000),
        a_sample(20_000, requests=5, errors=2, memory=12, slowestMs=9.0, waiting=1),
    ]
    assert own["samples"][1]["requests"] == 1  # type: ignore[index]  # an object of JSON


@pytest.mark.skipif(resident_bytes() is None, reason="this system does not tell it")
def test_the_overview_measures_the_memory_of_its_process() -> None:
    found = resident_bytes()
    assert found is not None
    assert 1 << 20 < found < 1 << 36
