import asyncio
from typing import Any

from emceepee.backends.catalog import ListKind
from emceepee.backends.link import LinkError, LinkFailure
from emceepee.sessions.lists.entry_list import EntryList, list_everywhere
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.scene import Scene, a_scene

PATIENCE = 0.05


async def listed(scene: Scene, *servers: str, kind: ListKind = ListKind.TOOLS) -> EntryList:
    connections = [scene.session.connection(name) for name in servers]
    async with asyncio.timeout(5):
        return await list_everywhere(connections, kind, patience=PATIENCE)


def names(listing: EntryList) -> list[tuple[Any, Any]]:
    return [(entry["server"], entry["name"]) for entry in listing.entries]


async def test_the_entries_of_all_come_in_the_order_of_the_servers_with_their_name_in_front() -> None:
    async with a_scene(b=ScriptedBackend(tools=["x", "y"]), a=ScriptedBackend(tools=["x"])) as scene:
        listing = await listed(scene, "b", "a")
    assert names(listing) == [("b", "x"), ("b", "y"), ("a", "x")]
    assert list(listing.entries[0]) == ["server", "name", "inputSchema"]
    assert listing.errors == []


async def test_a_backend_cannot_pass_as_another_one() -> None:
    backend = ScriptedBackend()
    backend.answers["tools/list"] = lambda _: {"tools": [{"name": "x", "server": "bank"}]}
    async with a_scene(a=backend) as scene:
        assert (await listed(scene, "a")).entries == [{"server": "a", "name": "x"}]


async def test_a_backend_that_fails_is_named_and_hides_no_other() -> None:
    broken = ScriptedBackend()
    broken.refuses = LinkError(LinkFailure.UNREACHABLE, "no route")
    async with a_scene(broken=broken, good=ScriptedBackend(tools=["x"])) as scene:
        listing = await listed(scene, "broken", "good")
    assert names(listing) == [("good", "x")]
    [error] = listing.errors
    assert error["server"] == "broken"
    assert "no route" in error["message"]


async def test_a_backend_that_is_slow_to_answer_delays_and_hides_no_other() -> None:
    slow = ScriptedBackend()
    del slow.answers["tools/list"]
    async with a_scene(slow=slow, good=ScriptedBackend(tools=["x"])) as scene:
        listing = await listed(scene, "slow", "good")
        assert names(listing) == [("good", "x")]
        assert listing.errors == [
            {
                "server": "slow",
                "message": 'Server "slow" has not answered yet. Name it in `server` to wait for it, or call again.',
            }
        ]


async def test_a_backend_that_is_still_connecting_is_said_to_be() -> None:
    slow = ScriptedBackend()
    async with a_scene(good=ScriptedBackend(tools=["x"]), slow=slow) as scene:
        slow.opens = asyncio.get_running_loop().create_future()
        reconnecting = asyncio.create_task(scene.session.connection("slow").reconnect())
        await settle()
        listing = await listed(scene, "slow", "good")
        assert names(listing) == [("good", "x")]
        assert "is still connecting" in listing.errors[0]["message"]
        slow.opens.set_result(None)
        async with asyncio.timeout(5):
            await reconnecting


async def test_what_a_slow_backend_answers_later_is_there_the_next_time() -> None:
    slow = ScriptedBackend()
    del slow.answers["tools/list"]
    async with a_scene(slow=slow, good=ScriptedBackend(tools=["x"])) as scene:
        await listed(scene, "slow", "good")
        (await slow.next_asked("tools/list")).reply(tools=[{"name": "late"}])
        await settle()
        assert names(await listed(scene, "slow", "good")) == [("slow", "late"), ("good", "x")]


async def test_a_single_backend_is_waited_for() -> None:
    slow = ScriptedBackend()
    del slow.answers["tools/list"]
    async with a_scene(slow=slow) as scene:
        listing = asyncio.create_task(listed(scene, "slow"))
        asked = await slow.next_asked("tools/list")
        done, _ = await asyncio.wait({listing}, timeout=PATIENCE * 3)
        assert not done
        asked.reply(tools=[{"name": "late"}])
        async with asyncio.timeout(5):
            assert names(await listing) == [("slow", "late")]


async def test_no_backends_give_an_empty_list() -> None:
    async with a_scene() as scene:
        assert await listed(scene) == EntryList()


async def test_backends_are_asked_at_the_same_time() -> None:
    first, second = ScriptedBackend(), ScriptedBackend()
    del first.answers["tools/list"], second.answers["tools/list"]
    async with a_scene(first=first, second=second) as scene:
        listing = asyncio.create_task(listed(scene, "first", "second"))
        asked = [await backend.next_asked("tools/list") for backend in (first, second)]
        for one in asked:
            one.reply(tools=[])
        async with asyncio.timeout(5):
            assert await listing == EntryList()


async def test_a_server_removed_while_it_is_listed_is_an_error_and_hides_no_other() -> None:
    leaving = ScriptedBackend()

    async def never(_: JsonObject) -> JsonObject:
        await asyncio.Event().wait()  # a line that does not notice its own end
        return {}

    leaving.answers["tools/list"] = never
    async with a_scene(leaving=leaving, good=ScriptedBackend(tools=["x"])) as scene:
        listing = asyncio.create_task(listed(scene, "leaving", "good"))
        await settle()
        async with asyncio.timeout(5):
            await scene.session.servers.remove("leaving")
            found = await listing
    assert names(found) == [("good", "x")]
    assert [error["server"] for error in found.errors] == ["leaving"]
