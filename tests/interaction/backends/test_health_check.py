"""A connected server is checked periodically; a failed check is only reported."""

import pytest

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.telemetry import spans
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.scene import Scene, a_scene

DEGRADED = "server_health_degraded"
RESTORED = "server_health_restored"


def checks(backend: ScriptedBackend) -> int:
    return sum(method in ("ping", "server/discover") for method, _ in backend.seen)


def silent(_: JsonObject) -> JsonObject:
    raise LinkError(LinkFailure.UNREACHABLE, "no answer")


def lively(_: JsonObject) -> JsonObject:
    return {}


def refusing(_: JsonObject) -> JsonObject:
    raise RpcError({"code": -32601, "message": "Method not found"})


async def degraded(scene: Scene, backend: ScriptedBackend) -> None:
    backend.answers["ping"] = silent
    scene.events()
    await scene.clock.advance(360)
    assert scene.event_types() == [DEGRADED]


@pytest.mark.parametrize(("modern", "method"), [(False, "ping"), (True, "server/discover")])
async def test_the_health_check_runs_every_two_minutes_with_the_request_of_its_era(modern: bool, method: str) -> None:
    backend = ScriptedBackend(modern=modern)
    backend.answers[method] = lively
    async with a_scene(one=backend) as scene:
        await scene.clock.advance(119.9)
        assert checks(backend) == 0
        await scene.clock.advance(0.1)
        assert backend.seen == [(method, {})]
        await scene.clock.advance(1200)
        assert checks(backend) == 11


@pytest.mark.parametrize(("spread", "after"), [(-1.0, 108), (1.0, 132)])
async def test_the_interval_between_two_health_checks_has_ten_percent_jitter(
    monkeypatch: pytest.MonkeyPatch, spread: float, after: float
) -> None:
    backend = ScriptedBackend()
    backend.answers["ping"] = lively
    as_before = Session.__init__

    def spread_out(self: Session, *args: object) -> None:
        as_before(self, *args)  # type: ignore[arg-type]  # passed on as they came
        self.servers._spread = lambda: spread

    monkeypatch.setattr(Session, "__init__", spread_out)
    async with a_scene(one=backend) as scene:
        await scene.clock.advance(after - 0.1)
        assert checks(backend) == 0
        await scene.clock.advance(0.2)
        assert checks(backend) == 1


async def test_any_json_rpc_response_passes_the_health_check() -> None:
    backend = ScriptedBackend()
    backend.answers["ping"] = refusing
    async with a_scene(one=backend) as scene:
        scene.events()
        await scene.clock.advance(1200)
        assert checks(backend) == 10
        assert scene.events() == []
        assert scene.session.connection("one").health.failures == 0


async def test_a_busy_connection_is_not_checked() -> None:
    backend = ScriptedBackend(is_process=True)
    backend.answers["ping"] = lively
    async with a_scene(one=backend) as scene:
        backend.is_busy = True
        await scene.clock.advance(1200)
        assert checks(backend) == 0
        backend.is_busy = False
        await scene.clock.advance(120)
        assert checks(backend) == 1


async def test_three_failed_health_checks_are_reported_once_and_never_cause_a_reconnect() -> None:
    backend = ScriptedBackend()
    backend.answers["ping"] = silent
    async with a_scene(one=backend) as scene:
        scene.events()
        await scene.clock.advance(240)
        assert scene.events() == []
        await scene.clock.advance(3600)
        assert scene.events() == [(DEGRADED, {"name": "one", "consecutiveFailures": 3, "lastError": "no answer"})]
        assert (scene.status("one"), len(backend.dials)) == ("connected", 1)
        listed = (await scene.value("list_servers"))["servers"][0]
        assert (listed["healthStatus"], listed["consecutiveHealthFailures"]) == ("degraded", 32)


async def test_a_health_check_without_an_answer_fails_after_ten_seconds() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        await scene.clock.advance(129.9)
        assert scene.session.connection("one").health.failures == 0
        await scene.clock.advance(0.2)
        health = scene.session.connection("one").health
        assert (health.failures, health.last_error) == (1, "no answer within 10 s")


async def test_an_answered_health_check_reports_the_recovery_once() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        await degraded(scene, backend)
        backend.answers["ping"] = lively
        await scene.clock.advance(360)
        assert scene.events() == [(RESTORED, {"name": "one"})]


@pytest.mark.parametrize("answer", [lively, refusing])
async def test_an_answered_call_reports_the_recovery_of_an_unhealthy_server(answer: object) -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        await degraded(scene, backend)
        backend.answers["tools/call"] = answer  # type: ignore[assignment]  # one of the two above
        result = await scene.call("execute_tool", server="one", tool="echo")
        assert RESTORED in str(result["content"])
        assert scene.session.connection("one").health.failures == 0


async def test_a_new_link_starts_healthy_and_only_the_new_link_is_checked() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        await degraded(scene, backend)
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        assert scene.session.connection("one").health.failures == 0
        backend.answers["ping"] = lively
        backend.seen.clear()
        await scene.clock.advance(1200)
        assert checks(backend) == 10


async def test_a_disconnected_server_and_a_server_with_checks_disabled_are_not_checked() -> None:
    gone, unchecked = ScriptedBackend(), ScriptedBackend()
    async with a_scene(one=gone) as scene:
        gone.refuses = LinkError(LinkFailure.UNREACHABLE, "connection refused")
        gone.link.break_off("the line went dead")
        await scene.clock.advance(1200)
        assert checks(gone) == 0
    async with a_scene(limits=Limits(health_check_seconds=0), one=unchecked) as scene:
        await scene.clock.advance(1200)
        assert checks(unchecked) == 0


async def test_a_health_check_belongs_to_no_request_not_even_to_the_first() -> None:
    backend = ScriptedBackend()
    seen: list[spans.Span | None] = []

    def note(_: JsonObject) -> JsonObject:
        seen.append(spans.current())
        return {}

    backend.answers["ping"] = note
    async with a_scene(one=backend) as scene:
        await scene.session.connection("one").rest()
        call = scene.start("execute_tool", server="one", tool="slow", timeout_ms=10)
        await backend.next_asked()
        await scene.clock.advance(1)
        await call
        await scene.clock.advance(360)
        assert (len(backend.dials), seen) == (2, [None] * 3)
