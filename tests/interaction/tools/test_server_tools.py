from typing import Any

import pytest

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.backends.spec import BackendSpec
from emceepee.sessions.servers import registry
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend, ScriptedLink
from support.fakes.clock import settle
from support.sessions.scene import Scene, a_scene

NONE: list[BackendSpec] = []
DEMO: JsonObject = {"name": "demo", "url": "http://demo.test/mcp"}


async def status(scene: Scene) -> list[JsonObject]:
    servers: list[JsonObject] = (await scene.value("list_servers"))["servers"]
    return servers


async def test_adding_a_server_connects_it_and_counts_its_tools() -> None:
    async with a_scene(specs=NONE, demo=ScriptedBackend(tools=["a", "b"])) as scene:
        added = await scene.value("add_server", **DEMO)
        assert added["tools"] == 2
        assert added["server"]["status"] == "connected"
        assert added["server"]["protocolVersion"] == "2025-11-25"
        assert added["server"]["capabilities"]["tools"] == {"listChanged": True}
        assert [server["name"] for server in await status(scene)] == ["demo"]


async def test_a_server_that_fails_to_connect_is_not_added_and_the_error_gives_the_reason() -> None:
    backend = ScriptedBackend()
    backend.refuses = LinkError(LinkFailure.UNREACHABLE, "exited with code 1; its stderr: no such option")
    async with a_scene(specs=NONE, demo=backend) as scene:
        error = await scene.error("add_server", **DEMO)
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert "its stderr: no such option" in error["message"]
        assert "call add_server again" in error["message"]
        assert await status(scene) == []


async def test_a_server_whose_tools_cannot_be_listed_is_still_added() -> None:
    backend = ScriptedBackend()
    backend.answers["tools/list"] = lambda _: {"nothing": 1}
    async with a_scene(specs=NONE, demo=backend) as scene:
        added = await scene.value("add_server", **DEMO)
        assert added["tools"] == 0
        assert "tools/list" in added["toolsError"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"name": "demo"}, "give either url"),
        ({"name": "emceepee", "url": "http://h"}, "reserved"),
        ({"name": "demo", "url": "http://h", "args": []}, "args does not go with url"),
        ({"name": "demo", "url": "http://h", "token": "x"}, "no such argument"),
    ],
)
async def test_invalid_settings_are_rejected_before_anything_is_tried(arguments: JsonObject, word: str) -> None:
    async with a_scene(specs=NONE) as scene:
        error = await scene.error("add_server", **arguments)
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
        assert word in error["message"]


async def test_adding_the_same_configuration_twice_returns_one_server_and_another_configuration_is_refused() -> None:
    async with a_scene(specs=NONE, demo=ScriptedBackend()) as scene:
        await scene.value("add_server", **DEMO)
        await scene.value("add_server", **DEMO)
        assert len(await status(scene)) == 1
        error = await scene.error("add_server", **{**DEMO, "timeout_ms": 5})
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
        assert "remove_server" in error["message"]


async def test_the_description_of_a_server_is_shown_wherever_the_server_is_shown() -> None:
    async with a_scene(specs=NONE, demo=ScriptedBackend()) as scene:
        added = await scene.value("add_server", **DEMO, description="to try\nthings")
        [line] = await status(scene)
        full = await scene.value("get_server_status", server="demo")
        assert [shown["description"] for shown in (added["server"], line, full)] == ["to try things"] * 3


async def test_a_server_without_a_description_shows_none() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        assert "description" not in (await status(scene))[0]


async def test_a_different_description_does_not_make_another_configuration() -> None:
    """The original description stays."""
    async with a_scene(specs=NONE, demo=ScriptedBackend()) as scene:
        await scene.value("add_server", **DEMO, description="first")
        again = await scene.value("add_server", **DEMO, description="second")
        assert again["server"]["description"] == "first"
        assert len(scene.backends["demo"].links) == 1


async def test_a_removed_server_is_gone() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        assert await scene.value("remove_server", name="demo") == {"removed": "demo"}
        assert await status(scene) == []
        assert scene.backends["demo"].link.closed.done()


@pytest.mark.parametrize(
    ("tool", "argument"), [("remove_server", "name"), ("reconnect_server", "name"), ("get_server_status", "server")]
)
async def test_the_error_for_an_unknown_server_suggests_a_similar_name(tool: str, argument: str) -> None:
    async with a_scene(github=ScriptedBackend()) as scene:
        error = await scene.error(tool, **{argument: "gihub"})
        assert error["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
        assert "Did you mean github?" in error["message"]


async def test_reconnecting_a_server_opens_a_new_link() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        scene.backends["demo"].link.break_off("gone")
        await settle()
        assert (await scene.value("reconnect_server", name="demo"))["server"]["status"] == "connected"
        assert len(scene.backends["demo"].links) == 2


async def test_a_failed_reconnect_returns_the_reason() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        scene.backends["demo"].refuses = LinkError(LinkFailure.UNREACHABLE, "no route")
        error = await scene.error("reconnect_server", name="demo")
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert "no route" in error["message"]


async def test_list_servers_shows_each_server_with_its_state() -> None:
    broken = ScriptedBackend()
    broken.refuses = LinkError(LinkFailure.UNREACHABLE, "no route")
    async with a_scene(good=ScriptedBackend(), broken=broken, lost=ScriptedBackend()) as scene:
        await scene.value("list_tools", server="good")
        scene.backends["lost"].link.break_off("exited")
        await settle()
        assert await status(scene) == [
            {
                "name": "good",
                "url": "http://good.test/mcp",
                "status": "connected",
                "connected": True,
                "healthStatus": "healthy",
                "connectedAt": "2026-01-01T00:00:00.000Z",
                "protocolVersion": "2025-11-25",
                "tools": 2,
            },
            {
                "name": "broken",
                "url": "http://broken.test/mcp",
                "status": "reconnecting",
                "connected": False,
                "healthStatus": "unknown",
                "lastError": "no route",
                "reconnectAttempt": 1,
                "nextRetryMs": 1000,
            },
            {
                "name": "lost",
                "url": "http://lost.test/mcp",
                "status": "reconnecting",
                "connected": False,
                "healthStatus": "unknown",
                "lastError": "exited",
                "reconnectAttempt": 1,
                "nextRetryMs": 1000,
            },
        ]


async def test_the_status_shows_one_server_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = ScriptedBackend()
    backend.facts.instructions = "be kind"
    monkeypatch.setattr(ScriptedLink, "process", lambda _: {"pid": 7})
    async with a_scene(demo=backend) as scene:
        for number in range(25):
            backend.link.listener.handle_output(f"line {number}", "stderr")
        backend.link.listener.handle_output("noise", "stdout")
        shown = await scene.value("get_server_status", server="demo")
    assert shown["instructions"] == "be kind"
    assert shown["process"] == {"pid": 7, "restarts": 0}
    assert shown["serverInfo"] == {"name": "scripted", "version": "1"}
    lines = [f"line {number}" for number in range(25)]
    assert shown["stderrTail"] == [*lines[:2], "(5 lines left out)", *lines[7:]]


async def test_credentials_are_not_shown_in_any_tool() -> None:
    secret: dict[str, Any] = {"url": "http://user:s3cret@demo.test/mcp?key=s3cret", "headers": {"X-Any": "s3cret"}}
    async with a_scene(specs=NONE, demo=ScriptedBackend()) as scene:
        shown = [await scene.call("add_server", name="demo", **secret), await scene.call("list_servers")]
        shown.append(await scene.call("get_server_status", server="demo"))
        scene.backends["demo"].refuses = LinkError(LinkFailure.UNREACHABLE, "no route")
        shown.append(await scene.call("reconnect_server", name="demo"))
    assert "s3cret" not in str(shown)


@pytest.mark.parametrize(
    "name",
    [
        *("Host", "connection", "Upgrade", "EXPECT", "Transfer-Encoding", "content-length", "te", " Host "),
        *("Mcp-Session-Id", "mcp-protocol-version", "Mcp-Method", "Mcp-Name", "Last-Event-ID"),
    ],
)
async def test_a_caller_cannot_set_headers_that_emceepee_sets_itself(name: str) -> None:
    async with a_scene(specs=NONE, demo=ScriptedBackend()) as scene:
        error = await scene.error("add_server", **DEMO, headers={"X-Fine": "1", name: "other.example"})
        assert (error["code"], name.strip() in error["message"]) == ("ERR_INVALID_ARGUMENTS", True)
        assert "other.example" not in str(error)
        await scene.value("add_server", **DEMO, headers={"Authorization": "Bearer x", "Accept": "*/*"})


async def test_an_invalid_root_is_rejected_with_a_message() -> None:
    async with a_scene(specs=NONE, demo=ScriptedBackend()) as scene:
        error = await scene.error("add_server", **DEMO, roots=["a\0b"])
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
        assert "roots: must not have control characters" in error["message"]


async def test_the_number_of_added_servers_per_principal_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "SERVERS_PER_PRINCIPAL", 2)
    async with a_scene(specs=NONE, a=ScriptedBackend(), b=ScriptedBackend(), c=ScriptedBackend()) as scene:
        for name in "ab":
            await scene.value("add_server", name=name, url=f"http://{name}.test/mcp")
        error = await scene.error("add_server", name="c", url="http://c.test/mcp")
        assert (error["code"], "2 servers were added already" in error["message"]) == ("ERR_LIMIT_EXCEEDED", True)
        await scene.value("add_server", name="a", url="http://a.test/mcp")  # it is there
        await scene.value("remove_server", name="a")
        await scene.value("add_server", name="c", url="http://c.test/mcp")
