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


async def test_the_entries_of_all_servers_are_listed_in_server_order_with_the_server_name_first() -> None:
    async with a_scene(b=ScriptedBackend(tools=["x", "y"]), a=ScriptedBackend(tools=["x"])) as scene:
        listing = await listed(scene, "b", "a")
    assert names(listing) == [("b", "x"), ("b", "y"), ("a", "x")]
    assert list(listing.entries[0]) == ["server", "name", "inputSchema"]
    assert listing.errors == []


async def test_a_backend_cannot_pose_as_another_one() -> None:
    backend = ScriptedBackend()
    backend.answers["tools/list"] = lambda _: {"tools": [{"name": "x", "server": "bank"}]}
    async with a_scene(a=backend) as scene:
        assert (await listed(scene, "a")).entries == [{"server": "a", "name": "x"}]


async def test_a_failing_backend_is_named_and_the_entries_of_the_others_are_listed() -> None:
    broken = ScriptedBackend()
    broken.refuses = LinkError(LinkFailure.UNREACHABLE, "no route")
    async with a_scene(broken=broken, good=ScriptedBackend(tools=["x"])) as scene:
        listing = await listed(scene, "broken", "good")
    assert names(listing) == [("good", "x")]
    [error] = listing.errors
    assert error["server"] == "broken"
    assert "no route" in error["message"]


async def test_a_slow_backend_is_named_and_does_not_delay_the_entries_of_the_others() -> None:
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


async def test_a_backend_that_is_still_connecting_is_named() -> None:
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


async def test_the_late_answer_of_a_slow_backend_is_in_the_next_list() -> None:
    slow = ScriptedBackend()
    del slow.answers["tools/list"]
    async with a_scene(slow=slow, good=ScriptedBackend(tools=["x"])) as scene:
        await listed(scene, "slow", "good")
        (await slow.next_asked("tools/list")).reply(tools=[{"name": "late"}])
        await settle()
        assert names(await listed(scene, "slow", "good")) == [("slow", "late"), ("good", "x")]


async def test_a_list_of_a_single_backend_waits_for_it() -> None:
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


async def test_without_backends_the_list_is_empty() -> None:
    async with a_scene() as scene:
        assert await listed(scene) == EntryList()


async def test_a_list_asks_all_backends_concurrently() -> None:
    first, second = ScriptedBackend(), ScriptedBackend()
    del first.answers["tools/list"], second.answers["tools/list"]
    async with a_scene(first=first, second=second) as scene:
        listing = asyncio.create_task(listed(scene, "first", "second"))
        asked = [await backend.next_asked("tools/list") for backend in (first, second)]
        for one in asked:
            one.reply(tools=[])
        async with asyncio.timeout(5):
            assert await listing == EntryList()


async def test_a_server_removed_during_the_list_is_an_error_and_the_others_are_listed() -> None:
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
