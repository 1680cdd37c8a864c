import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.backends import catalog
from emceepee.backends.catalog import Catalog, ListKind
from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.lifecycle import TaskOwner
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend, ScriptedLink
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock, settle

CHANGED = "notifications/tools/list_changed"


class Shelf:
    """A catalog over a scripted backend."""

    def __init__(self, *, modern: bool = False) -> None:
        self.backend = ScriptedBackend(modern=modern)
        self.clock = FakeClock()
        self.tasks = TaskOwner("test")
        self.link = ScriptedLink(self.backend, ScriptedListener())
        self.catalog = Catalog(
            self.link,
            self.clock,
            tasks=self.tasks,
        )

    def pages(self, *pages: JsonObject, method: str = "tools/list") -> None:
        """Answer with these pages: the first without a cursor, and page N with the cursor N."""
        self.backend.answers[method] = lambda params: pages[int(params.get("cursor", 0))]

    def by_hand(self, method: str = "tools/list") -> None:
        """Leave each request to the test to answer."""
        del self.backend.answers[method]

    async def names(self, kind: ListKind = ListKind.TOOLS) -> list[str]:
        async with asyncio.timeout(5):
            return [str(entry["name"]) for entry in await self.catalog.entries(kind)]

    def asks(self, method: str = "tools/list") -> int:
        return sum(seen == method for seen, _ in self.backend.seen)


@pytest.fixture(autouse=True)
def small_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in (("LIST_PAGES", 5), ("LIST_ENTRIES", 50), ("LIST_BYTES", 10_000)):
        monkeypatch.setattr(catalog, name, most)


@pytest.fixture
async def repository() -> AsyncIterator[Shelf]:
    made = Shelf()
    yield made
    async with asyncio.timeout(5):
        await made.tasks.close(within=5)


def tools(*names: str, **more: Any) -> JsonObject:
    return {"tools": [{"name": name} for name in names], **more}


async def test_the_catalog_follows_all_pages_with_the_cursors_of_the_backend(repository: Shelf) -> None:
    repository.pages(tools("a", nextCursor="1"), tools("b", nextCursor="2"), tools("c"))
    assert await repository.names() == ["a", "b", "c"]
    assert [params for _, params in repository.backend.seen] == [{}, {"cursor": "1"}, {"cursor": "2"}]


async def test_the_catalog_treats_an_empty_cursor_as_a_cursor(repository: Shelf) -> None:
    answers = {None: tools("a", nextCursor=""), "": tools("b")}
    repository.backend.answers["tools/list"] = lambda params: answers[params.get("cursor")]
    assert await repository.names() == ["a", "b"]


async def test_an_endless_list_fails_after_the_maximum_number_of_pages(repository: Shelf) -> None:
    repository.backend.answers["tools/list"] = lambda _: tools("a", nextCursor="again")
    with pytest.raises(LinkError, match="tools/list did not end after 5 pages"):
        await repository.names()
    assert repository.asks() == 5
    assert repository.catalog.known(ListKind.TOOLS) is None


async def test_a_list_with_too_many_entries_is_rejected_with_an_explanation(repository: Shelf) -> None:
    repository.pages(tools(*(f"t{n}" for n in range(30)), nextCursor="1"), tools(*(f"u{n}" for n in range(21))))
    with pytest.raises(LinkError, match="tools/list has more than 50 entries"):
        await repository.names()
    repository.pages(tools(*(f"t{n}" for n in range(50))))
    assert len(await repository.names()) == 50


async def test_a_list_with_too_many_bytes_is_rejected_with_an_explanation(repository: Shelf) -> None:
    large = {"tools": [{"name": "a", "description": "x" * 6000}]}
    repository.pages(large | {"nextCursor": "1"}, large)
    with pytest.raises(LinkError, match="or 10000 bytes"):
        await repository.names()


async def test_a_list_of_exactly_the_maximum_number_of_pages_is_complete(repository: Shelf) -> None:
    repository.pages(*(tools(str(number), nextCursor=str(number + 1)) for number in range(4)), tools("4"))
    assert await repository.names() == ["0", "1", "2", "3", "4"]


async def test_a_list_is_cached_until_the_backend_reports_a_change(repository: Shelf) -> None:
    repository.pages(tools("a"))
    assert await repository.names() == await repository.names() == ["a"]
    assert repository.asks() == 1
    repository.pages(tools("b"))
    repository.catalog.invalidate("notifications/prompts/list_changed")
    assert await repository.names() == ["a"]
    repository.catalog.invalidate(CHANGED)
    assert await repository.names() == ["b"]
    assert repository.asks() == 2


async def test_a_resource_list_change_invalidates_the_templates_as_well(repository: Shelf) -> None:
    for kind in (ListKind.RESOURCES, ListKind.TEMPLATES):
        await repository.names(kind)
    repository.catalog.invalidate("notifications/resources/list_changed")
    assert repository.catalog.known(ListKind.RESOURCES) is repository.catalog.known(ListKind.TEMPLATES) is None


async def test_concurrent_readers_of_a_list_share_one_request(repository: Shelf) -> None:
    repository.by_hand()
    asking = [repository.tasks.spawn(repository.names()) for _ in range(10)]
    (await repository.backend.next_asked("tools/list")).reply(tools=[{"name": "a"}])
    async with asyncio.timeout(5):
        assert await asyncio.gather(*asking) == [["a"]] * 10
    assert repository.asks() == 1


async def test_a_cancelled_reader_does_not_cancel_the_list_request_of_others(repository: Shelf) -> None:
    repository.by_hand()
    first, second = repository.tasks.spawn(repository.names()), repository.tasks.spawn(repository.names())
    asked = await repository.backend.next_asked("tools/list")
    first.cancel()
    await settle()
    asked.reply(tools=[{"name": "a"}])
    async with asyncio.timeout(5):
        assert await second == ["a"]
    assert repository.backend.cancelled == []


async def test_a_list_requested_after_a_change_is_never_the_old_one(repository: Shelf) -> None:
    """The response in flight may be from before the change, so a request after the change fetches a new list."""
    repository.by_hand()
    before = repository.tasks.spawn(repository.names())
    old = await repository.backend.next_asked("tools/list")
    repository.catalog.invalidate(CHANGED)
    after = repository.tasks.spawn(repository.names())
    new = await repository.backend.next_asked("tools/list")
    new.reply(tools=[{"name": "new"}])
    async with asyncio.timeout(5):
        assert await after == ["new"]
    old.reply(tools=[{"name": "old"}])
    async with asyncio.timeout(5):
        assert await before == ["old"]
    assert await repository.names() == ["new"]
    assert repository.asks() == 2


async def test_an_old_list_that_arrives_after_a_change_is_not_cached(repository: Shelf) -> None:
    repository.by_hand()
    before = repository.tasks.spawn(repository.names())
    old = await repository.backend.next_asked("tools/list")
    repository.catalog.invalidate(CHANGED)
    old.reply(tools=[{"name": "old"}])
    async with asyncio.timeout(5):
        await before
    assert repository.catalog.known(ListKind.TOOLS) is None


async def test_a_failed_list_request_reaches_every_waiting_reader_and_the_next_one_retries(repository: Shelf) -> None:
    repository.by_hand()
    asking = [repository.tasks.spawn(_code(repository)) for _ in range(3)]
    (await repository.backend.next_asked("tools/list")).refuse(-32000, "not now")
    async with asyncio.timeout(5):
        assert await asyncio.gather(*asking) == [-32000] * 3
    repository.pages(tools("a"))
    assert await repository.names() == ["a"]


async def _code(repository: Shelf) -> int | None:
    with pytest.raises(RpcError) as caught:
        await repository.names()
    return caught.value.code


async def test_a_missing_capability_gives_an_empty_list_without_a_request(repository: Shelf) -> None:
    del repository.link.facts.capabilities["prompts"]
    assert await repository.names(ListKind.PROMPTS) == []
    assert repository.backend.seen == []


async def test_a_missing_method_behind_a_declared_capability_gives_an_empty_list(repository: Shelf) -> None:
    repository.by_hand("resources/templates/list")
    asking = repository.tasks.spawn(repository.names(ListKind.TEMPLATES))
    (await repository.backend.next_asked("resources/templates/list")).refuse(-32601, "Method not found")
    async with asyncio.timeout(5):
        assert await asking == []


async def test_a_method_that_is_missing_on_a_later_page_fails_the_list(repository: Shelf) -> None:
    def answer(params: JsonObject) -> JsonObject:
        if "cursor" in params:
            raise RpcError({"code": -32601, "message": "Method not found"})
        return tools("a", nextCursor="1")

    repository.backend.answers["tools/list"] = answer
    with pytest.raises(RpcError, match="Method not found"):
        await repository.names()


@pytest.mark.parametrize("page", [{}, {"tools": None}, {"tools": {"a": 1}}])
async def test_a_response_without_a_list_is_a_protocol_failure(repository: Shelf, page: JsonObject) -> None:
    repository.pages(page)
    with pytest.raises(LinkError, match="has no list of tools") as caught:
        await repository.names()
    assert caught.value.failure is LinkFailure.PROTOCOL


async def test_list_entries_that_are_not_objects_are_omitted_and_the_others_are_unchanged(repository: Shelf) -> None:
    odd = {"name": "a", "unknown": {"x": None}, "inputSchema": None}
    repository.pages({"tools": [odd, 5, None, "x"]})
    assert await repository.catalog.entries(ListKind.TOOLS) == [odd]


async def test_a_modern_list_is_cached_for_its_ttl() -> None:
    repository = Shelf(modern=True)
    repository.pages(tools("a", ttlMs=60_000, nextCursor="1"), tools("b", ttlMs=10_000))
    assert await repository.names() == ["a", "b"]
    await repository.clock.advance(9.9)
    await repository.names()
    assert repository.asks() == 2
    await repository.clock.advance(0.2)
    await repository.names()
    assert repository.asks() == 4


@pytest.mark.parametrize("ttl", [{}, {"ttlMs": 0}, {"ttlMs": -5}, {"ttlMs": "soon"}, {"ttlMs": None}])
async def test_a_modern_list_without_a_valid_ttl_is_requested_each_time(ttl: JsonObject) -> None:
    repository = Shelf(modern=True)
    repository.pages(tools("a", **ttl))
    await repository.names()
    await repository.names()
    assert repository.asks() == 2


async def test_waiting_list_readers_get_an_error_when_the_connection_closes(repository: Shelf) -> None:
    """A cancelled reader would look as if its own caller had left, and would answer nobody."""
    repository.by_hand()
    asker = TaskOwner("asker")
    asking = asker.spawn(_closed(repository))
    await repository.backend.next_asked("tools/list")
    async with asyncio.timeout(5):
        await repository.tasks.close(within=5)
        assert await asking


async def test_waiting_list_readers_get_an_error_even_before_the_fetch_begins(repository: Shelf) -> None:
    asker = TaskOwner("asker")
    repository.by_hand()
    asking = asker.spawn(_closed(repository))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await repository.tasks.close(within=5)
        assert await asking
    assert repository.backend.seen == []


async def _closed(repository: Shelf) -> bool:
    with pytest.raises(LinkError) as caught:
        await repository.catalog.entries(ListKind.TOOLS)
    return caught.value.failure is LinkFailure.CLOSED


async def test_headers_that_mirror_arguments_follow_the_newest_tool_list(
    repository: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ScriptedLink, "mirrors_arguments", True)
    for header in ("Region", "Zone"):
        schema = {"type": "object", "properties": {"where": {"type": "string", "x-mcp-header": header}}}
        repository.pages({"tools": [{"name": "dig", "inputSchema": schema}]})
        assert await repository.catalog.param_headers("dig", {"where": "here"}) == {f"Mcp-Param-{header}": "here"}
        repository.catalog.invalidate(CHANGED)
    assert repository.asks() == 2
