"""Messages on a shared link go to the affected sessions, and to no others."""

import asyncio
from typing import Any, cast

import pytest

from emceepee.backends.link import Link, LinkError, LinkLifetime, RpcError, ServerFacts
from emceepee.backends.links.link_view import CallOrigin, LinkView, SharedResumption
from emceepee.backends.links.shared_links import LOGGED, UPDATED, SharedLinks
from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.backends.tasks.own_tasks import PROGRESS
from emceepee.backends.tasks.task_messages import RELATED_TASK, STATUS_CHANGED
from emceepee.futures import reject, resolve
from emceepee.state.connection.connection_state import LinkEnd, LinkEndKind
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import settle

SPEC = BackendSpec(name="one", target=StdioTarget(command="one"), is_shared=True)


class Hearing:
    """A session at its end of the view."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def handle_request(self, method: str, params: JsonObject, origin: object | None, **_: Any) -> JsonObject:
        self.heard.append(method)
        return {"from": id(self)}

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        self.heard.append(method)

    def handle_output(self, line: str, source: str) -> None:
        self.heard.append(line)

    def take_request(self, key: int | str, method: str, params: JsonObject) -> None:
        return None


class OneLink(LinkLifetime):
    """The shared link: it records requests, and answers calls on demand."""

    def __init__(self) -> None:
        super().__init__()
        self.facts = ServerFacts()
        self.asked: list[tuple[str, Any]] = []
        self.headers: list[Any] = []  # that came with each
        self.mirrors_arguments, self.identity = True, "the session there"
        self.resumption: object | None = object()
        self._calls: list[asyncio.Future[JsonObject]] = []

    async def request(
        self, method: str, params: JsonObject | None = None, *, headers: Any = None, **_: Any
    ) -> JsonObject:
        self.asked.append((method, params))
        self.headers.append(headers)
        if method != "tools/call":
            return {}
        self._calls.append(asyncio.get_running_loop().create_future())
        return await self._calls[-1]

    def answer_calls(self, **answer: Any) -> None:
        for call in self._calls:
            resolve(call, answer)

    async def close(self) -> None:
        self.end(LinkEnd(LinkEndKind.CLOSED, "closed"))

    def _fail_requests(self, error: LinkError) -> None:
        for call in self._calls:
            reject(call, error)


class Scene:
    def __init__(self) -> None:
        self.links = SharedLinks()
        self.opened: list[OneLink] = []
        self.listener: Any = None

    async def join(self, principal: str = "me") -> tuple[Link, Hearing]:
        hearing = Hearing()
        return await self.links.join(SPEC, principal, cast(Any, hearing), self._open), hearing

    async def _open(self, listener: Any, access: Any) -> Link:
        self.listener = listener
        self.opened.append(OneLink())
        return cast(Link, self.opened[-1])


async def test_sessions_share_a_link_only_within_one_principal() -> None:
    scene = Scene()
    await asyncio.gather(scene.join(), scene.join())
    assert len(scene.opened) == 1
    await scene.join("you")
    assert len(scene.opened) == 2


async def test_a_shared_link_closes_when_its_last_session_leaves() -> None:
    scene = Scene()
    (one, _), (two, _) = await scene.join(), await scene.join()
    await one.close()
    assert not scene.opened[0].closed.done()
    await two.close()
    assert scene.opened[0].closed.done()
    await scene.join()
    assert len(scene.opened) == 2


async def test_a_backend_request_goes_to_the_only_session_with_a_running_call_or_is_refused() -> None:
    scene = Scene()
    (one, first), (two, second) = await scene.join(), await scene.join()
    with pytest.raises(RpcError, match="2 sessions share this server"):
        await scene.listener.handle_request("elicitation/create", {}, None)
    async with asyncio.TaskGroup() as calls:
        calls.create_task(one.request("tools/call", {}, origin=object()))
        await settle()
        await scene.listener.handle_request("elicitation/create", {}, None)
        assert (first.heard, second.heard) == (["elicitation/create"], [])
        calls.create_task(two.request("tools/call", {}, origin=object()))
        await settle()
        with pytest.raises(RpcError, match="cannot know which"):
            await scene.listener.handle_request("elicitation/create", {}, None)
        scene.opened[0].answer_calls()


async def test_resource_updates_go_to_subscribers_and_list_changes_to_all_sessions() -> None:
    scene = Scene()
    (one, first), (two, second) = await scene.join(), await scene.join()
    for view in (one, two):
        await view.request("resources/subscribe", {"uri": "a:both"})
    await one.request("resources/subscribe", {"uri": "a:one"})
    assert [params["uri"] for _, params in scene.opened[0].asked] == ["a:both", "a:one"]
    scene.listener.handle_notification("notifications/resources/updated", {"uri": "a:one"}, None)
    scene.listener.handle_notification("notifications/tools/list_changed", {}, None)
    assert first.heard == ["notifications/resources/updated", "notifications/tools/list_changed"]
    assert second.heard == ["notifications/tools/list_changed"]
    await two.request("resources/unsubscribe", {"uri": "a:both"})
    assert len(scene.opened[0].asked) == 2  # the other session still subscribes to it


async def test_an_update_of_a_sub_resource_goes_to_subscribers_of_its_parent() -> None:
    scene = Scene()
    (one, first), (two, second) = await scene.join(), await scene.join()
    await one.request("resources/subscribe", {"uri": "file:///dir"})
    await two.request("resources/subscribe", {"uri": "file:///dir/sub/"})
    for uri in ("file:///dir/a.txt", "file:///dir#a", "file:///directory", "file:///", "file:///dir/sub/b.txt"):
        scene.listener.handle_notification(UPDATED, {"uri": uri}, None)
    scene.listener.handle_notification(UPDATED, {"uri": None}, None)
    assert (len(first.heard), len(second.heard)) == (3, 1)


async def test_a_shared_link_uses_the_lowest_log_level_and_filters_messages_per_session() -> None:
    scene = Scene()
    (one, first), (two, second) = await scene.join(), await scene.join()
    for view, level in ((one, "warning"), (two, "error"), (two, "info")):
        await view.request("logging/setLevel", {"level": level})
    assert [params["level"] for _, params in scene.opened[0].asked] == ["warning", "info"]
    scene.listener.handle_notification("notifications/message", {"level": "info"}, None)
    assert (first.heard, second.heard) == ([], ["notifications/message"])


async def test_a_shared_link_drops_a_notification_without_an_owner() -> None:
    scene = Scene()
    (_, first), (_, second) = await scene.join(), await scene.join()
    scene.listener.handle_notification("notifications/tasks/status", {"taskId": "secret"}, None)
    assert first.heard == second.heard == []


async def test_a_task_or_progress_message_on_a_shared_link_goes_only_to_its_session() -> None:
    scene = Scene()
    (one, first), (two, second) = await scene.join(), await scene.join()
    link, about = scene.opened[0], {"_meta": {RELATED_TASK: {"taskId": "t1"}}}
    asked = {"name": "dig", "task": {}, "_meta": {"progressToken": "p1"}}
    beginning = asyncio.ensure_future(one.request("tools/call", asked, origin=object()))
    await settle()
    scene.listener.handle_notification(PROGRESS, {"progressToken": "p1"}, None)
    link.answer_calls(task={"taskId": "t1"})
    question = asyncio.ensure_future(scene.listener.handle_request("elicitation/create", about, None))
    await asyncio.gather(beginning, question)
    assert first.heard == [PROGRESS, "elicitation/create"], "also in the very turn in which its id became known"

    calling = asyncio.ensure_future(two.request("tools/call", {}, origin=object()))
    await settle()
    first.heard.clear()
    for method, params in (
        (PROGRESS, {"progressToken": "p1"}),
        (STATUS_CHANGED, {"taskId": "t1"}),
        (LOGGED, {"level": "info", **about}),
    ):
        scene.listener.handle_notification(method, params, None)
        scene.listener.handle_notification(method, params, CallOrigin(cast(LinkView, two), None))
    assert (first.heard, second.heard) == ([method for method in (PROGRESS, STATUS_CHANGED, LOGGED) for _ in "12"], [])

    scene.listener.handle_notification(PROGRESS, {"progressToken": 7}, None)
    scene.listener.handle_notification(STATUS_CHANGED, {"taskId": "t2"}, None)
    unknown = {"_meta": {RELATED_TASK: {"taskId": "t2"}}}
    with pytest.raises(RpcError, match="cannot know which"):
        await scene.listener.handle_request("elicitation/create", unknown, None)
    assert second.heard == [], "though it is the only one that calls"
    link.answer_calls()
    await calling


async def test_a_lost_shared_link_ends_every_view_and_fails_their_running_calls() -> None:
    scene = Scene()
    (one, _), (two, _) = await scene.join(), await scene.join()
    running = asyncio.ensure_future(one.request("tools/call", {}, origin=object()))
    await settle()
    two.end(LinkEnd(LinkEndKind.LOST, "it crashed"))
    with pytest.raises(LinkError, match="it crashed"):
        await running
    assert one.closed.result().reason == "it crashed"


async def test_closing_a_view_fails_only_its_own_calls() -> None:
    scene = Scene()
    (one, _), (two, _) = await scene.join(), await scene.join()
    mine = asyncio.ensure_future(one.request("tools/call", {}, origin=object()))
    other = asyncio.ensure_future(two.request("tools/call", {}, origin=object()))
    await settle()
    await one.close()
    with pytest.raises(LinkError):
        await mine
    scene.opened[0].answer_calls(content=[])
    assert await other == {"content": []}


async def test_a_view_forwards_headers_and_attributes_of_its_shared_link() -> None:
    scene = Scene()
    view, _ = await scene.join()
    await view.request("tools/list", headers={"mcp-param-city": "Rome"})
    assert scene.opened[0].headers == [{"mcp-param-city": "Rome"}]
    assert (view.mirrors_arguments, view.identity) == (True, "the session there")


async def test_a_view_marks_the_resumption_of_its_link_as_shared() -> None:
    scene = Scene()
    view, _ = await scene.join()
    assert isinstance(view.resumption, SharedResumption)
    assert view.resumption.resumption is scene.opened[0].resumption
    assert view.resumption.tasks is cast(LinkView, view).tasks
    scene.opened[0].resumption = None
    assert view.resumption is None
