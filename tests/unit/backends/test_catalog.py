import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.backends.catalog import Catalog, Kind
from emceepee.backends.link import Failure, LinkError, RpcError
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.state.limits import Limits
from support.fake_clock import FakeClock, settle
from support.scripted_backend import ScriptedBackend, ScriptedLink
from support.scripted_listener import ScriptedListener

CHANGED = "notifications/tools/list_changed"


class Shelf:
    """A catalog over a scripted backend."""

    def __init__(self, *, modern: bool = False, most_pages: int = 5) -> None:
        self.backend = ScriptedBackend(modern=modern)
        self.clock = FakeClock()
        self.tasks = TaskOwner("test")
        self.link = ScriptedLink(self.backend, ScriptedListener())
        self.catalog = Catalog(
            self.link,
            self.clock,
            tasks=self.tasks,
            limits=Limits(list_pages=most_pages, list_entries=50, list_bytes=10_000),
        )

    def pages(self, *pages: JsonObject, method: str = "tools/list") -> None:
        """Answer with these pages: the first without a cursor, page N with the cursor N."""
        self.backend.answers[method] = lambda params: pages[int(params.get("cursor", 0))]

    def by_hand(self, method: str = "tools/list") -> None:
        """The test answers."""
        del self.backend.answers[method]

    async def names(self, kind: Kind = Kind.TOOLS) -> list[str]:
        async with asyncio.timeout(5):
            return [str(entry["name"]) for entry in await self.catalog.entries(kind)]

    def asks(self, method: str = "tools/list") -> int:
        return sum(seen == method for seen, _ in self.backend.seen)


@pytest.fixture
async def shelf() -> AsyncIterator[Shelf]:
    made = Shelf()
    yield made
    async with asyncio.timeout(5):
        await made.tasks.close(within=5)


def tools(*names: str, **more: Any) -> JsonObject:
    return {"tools": [{"name": name} for name in names], **more}


async def test_all_pages_are_followed_with_the_backends_own_cursors(shelf: Shelf) -> None:
    shelf.pages(tools("a", nextCursor="1"), tools("b", nextCursor="2"), tools("c"))
    assert await shelf.names() == ["a", "b", "c"]
    assert [params for _, params in shelf.backend.seen] == [{}, {"cursor": "1"}, {"cursor": "2"}]


async def test_an_empty_cursor_is_a_cursor(shelf: Shelf) -> None:
    answers = {None: tools("a", nextCursor=""), "": tools("b")}
    shelf.backend.answers["tools/list"] = lambda params: answers[params.get("cursor")]
    assert await shelf.names() == ["a", "b"]


async def test_a_list_without_end_is_given_up_after_the_most_pages(shelf: Shelf) -> None:
    shelf.backend.answers["tools/list"] = lambda _: tools("a", nextCursor="again")
    with pytest.raises(LinkError, match="tools/list did not end after 5 pages"):
        await shelf.names()
    assert shelf.asks() == 5
    assert shelf.catalog.known(Kind.TOOLS) is None


async def test_a_list_with_too_many_entries_is_refused_in_words(shelf: Shelf) -> None:
    shelf.pages(tools(*(f"t{n}" for n in range(30)), nextCursor="1"), tools(*(f"u{n}" for n in range(21))))
    with pytest.raises(LinkError, match="tools/list has more than 50 entries"):
        await shelf.names()
    shelf.pages(tools(*(f"t{n}" for n in range(50))))
    assert len(await shelf.names()) == 50


async def test_a_list_that_is_too_large_is_refused_in_words(shelf: Shelf) -> None:
    large = {"tools": [{"name": "a", "description": "x" * 6000}]}
    shelf.pages(large | {"nextCursor": "1"}, large)
    with pytest.raises(LinkError, match="or 10000 bytes"):
        await shelf.names()


async def test_a_list_of_exactly_the_most_pages_is_whole(shelf: Shelf) -> None:
    shelf.pages(*(tools(str(number), nextCursor=str(number + 1)) for number in range(4)), tools("4"))
    assert await shelf.names() == ["0", "1", "2", "3", "4"]


async def test_a_list_is_kept_until_the_backend_says_that_it_changed(shelf: Shelf) -> None:
    shelf.pages(tools("a"))
    assert await shelf.names() == await shelf.names() == ["a"]
    assert shelf.asks() == 1
    shelf.pages(tools("b"))
    shelf.catalog.changed("notifications/prompts/list_changed")
    assert await shelf.names() == ["a"]
    shelf.catalog.changed(CHANGED)
    assert await shelf.names() == ["b"]
    assert shelf.asks() == 2


async def test_changed_resources_make_their_templates_old_too(shelf: Shelf) -> None:
    for kind in (Kind.RESOURCES, Kind.TEMPLATES):
        await shelf.names(kind)
    shelf.catalog.changed("notifications/resources/list_changed")
    assert shelf.catalog.known(Kind.RESOURCES) is shelf.catalog.known(Kind.TEMPLATES) is None


async def test_many_askers_at_once_cause_one_request(shelf: Shelf) -> None:
    shelf.by_hand()
    asking = [shelf.tasks.spawn(shelf.names()) for _ in range(10)]
    (await shelf.backend.next_asked("tools/list")).reply(tools=[{"name": "a"}])
    async with asyncio.timeout(5):
        assert await asyncio.gather(*asking) == [["a"]] * 10
    assert shelf.asks() == 1


async def test_an_asker_who_leaves_takes_nothing_from_the_others(shelf: Shelf) -> None:
    shelf.by_hand()
    first, second = shelf.tasks.spawn(shelf.names()), shelf.tasks.spawn(shelf.names())
    asked = await shelf.backend.next_asked("tools/list")
    first.cancel()
    await settle()
    asked.reply(tools=[{"name": "a"}])
    async with asyncio.timeout(5):
        assert await second == ["a"]
    assert shelf.backend.cancelled == []


async def test_a_change_during_a_fetch_is_never_answered_with_the_old_list(shelf: Shelf) -> None:
    """The answer on its way may be from before the change: whoever asks after the change gets a fresh one."""
    shelf.by_hand()
    before = shelf.tasks.spawn(shelf.names())
    old = await shelf.backend.next_asked("tools/list")
    shelf.catalog.changed(CHANGED)
    after = shelf.tasks.spawn(shelf.names())
    new = await shelf.backend.next_asked("tools/list")
    new.reply(tools=[{"name": "new"}])
    async with asyncio.timeout(5):
        assert await after == ["new"]
    old.reply(tools=[{"name": "old"}])
    async with asyncio.timeout(5):
        assert await before == ["old"]
    assert await shelf.names() == ["new"]
    assert shelf.asks() == 2


async def test_an_old_list_that_arrives_after_the_change_is_not_kept(shelf: Shelf) -> None:
    shelf.by_hand()
    before = shelf.tasks.spawn(shelf.names())
    old = await shelf.backend.next_asked("tools/list")
    shelf.catalog.changed(CHANGED)
    old.reply(tools=[{"name": "old"}])
    async with asyncio.timeout(5):
        await before
    assert shelf.catalog.known(Kind.TOOLS) is None


async def test_a_failure_reaches_every_asker_and_the_next_one_tries_anew(shelf: Shelf) -> None:
    shelf.by_hand()
    asking = [shelf.tasks.spawn(_code(shelf)) for _ in range(3)]
    (await shelf.backend.next_asked("tools/list")).refuse(-32000, "not now")
    async with asyncio.timeout(5):
        assert await asyncio.gather(*asking) == [-32000] * 3
    shelf.pages(tools("a"))
    assert await shelf.names() == ["a"]


async def _code(shelf: Shelf) -> int | None:
    with pytest.raises(RpcError) as caught:
        await shelf.names()
    return caught.value.code


async def test_a_capability_that_is_missing_is_an_empty_list_without_asking(shelf: Shelf) -> None:
    del shelf.link.facts.capabilities["prompts"]
    assert await shelf.names(Kind.PROMPTS) == []
    assert shelf.backend.seen == []


async def test_a_method_that_is_missing_behind_its_capability_is_an_empty_list(shelf: Shelf) -> None:
    shelf.by_hand("resources/templates/list")
    asking = shelf.tasks.spawn(shelf.names(Kind.TEMPLATES))
    (await shelf.backend.next_asked("resources/templates/list")).refuse(-32601, "Method not found")
    async with asyncio.timeout(5):
        assert await asking == []


async def test_a_method_that_goes_missing_on_a_later_page_is_a_failure(shelf: Shelf) -> None:
    def answer(params: JsonObject) -> JsonObject:
        if "cursor" in params:
            raise RpcError({"code": -32601, "message": "Method not found"})
        return tools("a", nextCursor="1")

    shelf.backend.answers["tools/list"] = answer
    with pytest.raises(RpcError, match="Method not found"):
        await shelf.names()


@pytest.mark.parametrize("page", [{}, {"tools": None}, {"tools": {"a": 1}}])
async def test_an_answer_without_a_list_is_a_failure_of_the_protocol(shelf: Shelf, page: JsonObject) -> None:
    shelf.pages(page)
    with pytest.raises(LinkError, match="has no list of tools") as caught:
        await shelf.names()
    assert caught.value.failure is Failure.PROTOCOL


async def test_entries_that_are_no_objects_are_left_out_and_the_others_are_untouched(shelf: Shelf) -> None:
    odd = {"name": "a", "unknown": {"x": None}, "inputSchema": None}
    shelf.pages({"tools": [odd, 5, None, "x"]})
    assert await shelf.catalog.entries(Kind.TOOLS) == [odd]


async def test_a_modern_list_is_good_for_as_long_as_it_says() -> None:
    shelf = Shelf(modern=True)
    shelf.pages(tools("a", ttlMs=60_000, nextCursor="1"), tools("b", ttlMs=10_000))
    assert await shelf.names() == ["a", "b"]
    await shelf.clock.advance(9.9)
    await shelf.names()
    assert shelf.asks() == 2
    await shelf.clock.advance(0.2)
    await shelf.names()
    assert shelf.asks() == 4


@pytest.mark.parametrize("ttl", [{}, {"ttlMs": 0}, {"ttlMs": -5}, {"ttlMs": "soon"}, {"ttlMs": None}])
async def test_a_modern_list_that_does_not_say_how_long_it_is_good_is_asked_for_each_time(ttl: JsonObject) -> None:
    shelf = Shelf(modern=True)
    shelf.pages(tools("a", **ttl))
    await shelf.names()
    await shelf.names()
    assert shelf.asks() == 2


async def test_askers_are_told_when_the_connection_closes_under_them(shelf: Shelf) -> None:
    """Not cancelled: a cancelled asker would look as if its own caller had left, and answer nobody."""
    shelf.by_hand()
    asker = TaskOwner("asker")
    asking = asker.spawn(_closed(shelf))
    await shelf.backend.next_asked("tools/list")
    async with asyncio.timeout(5):
        await shelf.tasks.close(within=5)
        assert await asking


async def test_askers_are_told_even_if_the_fetch_had_not_begun(shelf: Shelf) -> None:
    asker = TaskOwner("asker")
    shelf.by_hand()
    asking = asker.spawn(_closed(shelf))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await shelf.tasks.close(within=5)
        assert await asking
    assert shelf.backend.seen == []


async def _closed(shelf: Shelf) -> bool:
    with pytest.raises(LinkError) as caught:
        await shelf.catalog.entries(Kind.TOOLS)
    return caught.value.failure is Failure.CLOSED
