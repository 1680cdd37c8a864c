"""Subscriptions are requested as the era defines, and again on every new link."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked, ScriptedBackend
from support.fakes.clock import settle
from support.figures import record_figure
from support.sessions.scene import Scene, a_scene

LISTEN = "subscriptions/listen"
LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def wanted(listen: Asked) -> JsonObject:
    return dict(listen.params["notifications"])


def notices(scene: Scene) -> list[str]:
    return [data["method"] for kind, data in scene.events() if kind == "notification"]


async def subscribed(scene: Scene, backend: ScriptedBackend, uri: str) -> Asked:
    """Subscribe to a resource of a modern backend; the listen that is in force then."""
    asking = scene.start("subscribe_resource", server="one", uri=uri)
    listen = await backend.next_asked(LISTEN)
    backend.link.acknowledge(listen)
    assert not (await asking).get("isError")
    return listen


async def listed(scene: Scene, backend: ScriptedBackend) -> Asked:
    """Read a list of a modern backend; the listen that this brings about."""
    await scene.value("list_tools")
    listen = await backend.next_asked(LISTEN)
    backend.link.acknowledge(listen)
    await settle()
    return listen


@asynccontextmanager
async def a_modern_scene() -> AsyncIterator[tuple[Scene, ScriptedBackend]]:
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene:
        yield scene, backend


async def test_one_listen_request_names_all_subscriptions_and_its_successor_starts_before_it_ends() -> None:
    async with a_modern_scene() as (scene, backend):
        first = await subscribed(scene, backend, "note://b")
        assert wanted(first) == {"resourceSubscriptions": ["note://b"]}
        asking = scene.start("subscribe_resource", server="one", uri="note://a")
        second = await backend.next_asked(LISTEN)
        await settle()
        assert wanted(second) == {"resourceSubscriptions": ["note://a", "note://b"]}
        assert backend.cancelled == []
        assert not asking.done()
        backend.link.acknowledge(second)
        await asking
        await settle()
        assert backend.cancelled == [first]
        third = await listed(scene, backend)
        assert wanted(third) == LISTS | {"resourceSubscriptions": ["note://a", "note://b"]}
        assert backend.cancelled == [first, second]


async def test_the_last_unsubscribe_ends_the_listen_request() -> None:
    async with a_modern_scene() as (scene, backend):
        listen = await subscribed(scene, backend, "note://a")
        await scene.value("unsubscribe_resource", server="one", uri="note://a")
        await settle()
        assert backend.cancelled == [listen]
        assert backend.asked == []


async def test_notifications_of_a_listen_request_arrive_once_and_without_its_subscription_id() -> None:
    async with a_modern_scene() as (scene, backend):
        listen = await subscribed(scene, backend, "note://a")
        scene.events()
        mark = {"io.modelcontextprotocol/subscriptionId": "7"}
        backend.link.listener.handle_notification(
            "notifications/resources/updated", {"uri": "note://a", "_meta": mark}, listen.origin
        )
        ((kind, data),) = scene.events()
        assert (kind, data["method"], data["params"]) == (
            "notification",
            "notifications/resources/updated",
            {"uri": "note://a"},
        )


async def test_a_new_link_listens_to_all_subscriptions() -> None:
    async with a_modern_scene() as (scene, backend):
        await subscribed(scene, backend, "note://a")
        await listed(scene, backend)
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        fresh = await backend.next_asked(LISTEN)
        assert wanted(fresh) == LISTS | {"resourceSubscriptions": ["note://a"]}
        backend.link.acknowledge(fresh)
        await settle()
        assert scene.status("one") == "connected"


async def test_after_a_lost_listen_request_lists_count_as_changed_and_the_request_is_repeated() -> None:
    async with a_modern_scene() as (scene, backend):
        await subscribed(scene, backend, "note://a")
        listen = await listed(scene, backend)
        scene.events()
        listen.fail(LinkError(LinkFailure.UNREACHABLE, "the stream was cut"))
        await scene.clock.advance(0.1)
        again = await backend.next_asked(LISTEN)
        assert wanted(again) == wanted(listen)
        assert notices(scene) == []
        backend.link.acknowledge(again)
        await settle()
        assert sorted(notices(scene)) == [
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/resources/updated",
            "notifications/tools/list_changed",
        ]
        assert len(backend.links) == 1


async def test_a_listen_request_that_cannot_be_reopened_shows_that_the_server_is_gone() -> None:
    async with a_modern_scene() as (scene, backend):
        listen = await subscribed(scene, backend, "note://a")
        listen.fail(LinkError(LinkFailure.UNREACHABLE, "the stream was cut"))
        await scene.clock.advance(0.1)
        again = await backend.next_asked(LISTEN)
        again.fail(LinkError(LinkFailure.UNREACHABLE, "connection refused", may_have_run=False))
        await settle()
        assert scene.status("one") == "reconnecting"


async def test_a_listen_request_that_is_not_acknowledged_on_a_new_link_is_repeated() -> None:
    async with a_modern_scene() as (scene, backend):
        await subscribed(scene, backend, "note://a")
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        await backend.next_asked(LISTEN)
        await scene.clock.advance(10)
        assert scene.status("one") == "connected"
        await scene.clock.advance(0.1)
        again = await backend.next_asked(LISTEN)
        backend.link.acknowledge(again)
        await settle()
        assert notices(scene) == ["notifications/resources/updated"]


async def test_a_server_that_ends_every_listen_request_at_once_receives_ever_fewer_of_them() -> None:
    async with a_modern_scene() as (scene, backend):
        backend.answers["server/discover"] = lambda _: {}
        listen = await subscribed(scene, backend, "note://a")
        listens = 1
        for _ in range(3000):  # five minutes
            if not listen.answer.done():
                listen.reply()
            await scene.clock.advance(0.1)
            if backend.asked:
                listen = await backend.next_asked(LISTEN)
                backend.link.acknowledge(listen)
                await settle()
                listens += 1
        told = notices(scene).count("notifications/resources/updated")
        record_figure(f"{listens} listens and {told} notifications in five minutes")
        assert 10 <= listens <= 16
        assert told == listens - 1


async def test_a_listen_request_that_lasted_is_soon_repeated() -> None:
    async with a_modern_scene() as (scene, backend):
        listen = await subscribed(scene, backend, "note://a")
        for _ in range(10):
            listen.reply()
            await scene.clock.advance(60)
            listen = await backend.next_asked(LISTEN)
            backend.link.acknowledge(listen)
            await settle()
        await scene.clock.advance(5)
        listen.reply()
        await scene.clock.advance(0.1)
        assert wanted(await backend.next_asked(LISTEN)) == wanted(listen)


async def test_a_listen_request_that_is_acknowledged_and_ended_at_once_is_repeated() -> None:
    async with a_modern_scene() as (scene, backend):
        asking = scene.start("subscribe_resource", server="one", uri="note://a")
        listen = await backend.next_asked(LISTEN)
        backend.link.acknowledge(listen)
        listen.reply()
        assert not (await asking).get("isError")
        await scene.clock.advance(0.1)
        assert wanted(await backend.next_asked(LISTEN)) == wanted(listen)


async def test_a_refused_subscription_is_not_stored() -> None:
    async with a_modern_scene() as (scene, backend):
        asking = scene.start("subscribe_resource", server="one", uri="note://a")
        (await backend.next_asked(LISTEN)).refuse(-32602, "no such resource")
        assert (await asking)["structuredContent"]["error"]["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert scene.session.connection("one").settings.subscriptions == []


@pytest.mark.parametrize("is_acknowledged", [False, True], ids=["before it is in force", "in the same breath"])
async def test_a_canceled_subscription_leaves_the_listen_request_unchanged(is_acknowledged: bool) -> None:
    async with a_modern_scene() as (scene, backend):
        first = await subscribed(scene, backend, "note://a")
        asking = scene.start("subscribe_resource", server="one", uri="note://b")
        second = await backend.next_asked(LISTEN)
        if is_acknowledged:
            backend.link.acknowledge(second)
        asking.cancel()
        await settle()
        assert asking.cancelled()
        assert backend.cancelled == [second], "the other one goes on"
        third = await subscribed(scene, backend, "note://c")
        await settle()
        assert wanted(third) == {"resourceSubscriptions": ["note://a", "note://c"]}
        assert backend.cancelled == [second, first]


async def test_a_handshake_era_server_receives_one_subscribe_request_per_resource() -> None:
    backend = ScriptedBackend()
    backend.answers |= {"resources/subscribe": lambda _: {}, "resources/unsubscribe": lambda _: {}}
    async with a_scene(one=backend) as scene:
        for _ in range(2):
            await scene.value("subscribe_resource", server="one", uri="note://a")
        await scene.value("unsubscribe_resource", server="one", uri="note://a")
        await scene.value("unsubscribe_resource", server="one", uri="note://never")
        assert backend.seen == [
            ("resources/subscribe", {"uri": "note://a"}),
            ("resources/unsubscribe", {"uri": "note://a"}),
        ]


async def test_a_subscription_at_a_server_that_never_answers_times_out() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        asking = scene.start("subscribe_resource", server="one", uri="note://a")
        await scene.clock.advance(60)
        assert (await asking)["structuredContent"]["error"]["code"] == "TOOL_ERR_TIMEOUT"
        assert scene.session.connection("one").settings.subscriptions == []
