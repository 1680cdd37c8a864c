import pytest
from mcp.server.lowlevel import Server

from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.codec import encode
from emceepee.json_rpc import Request
from emceepee.json_types import JsonObject
from emceepee.server.eras import Era, HandshakeEra, ModernEra
from emceepee.server.events_feed import EventsFeed
from emceepee.server.sdk_server import build_sdk_server
from emceepee.tools.request_context import NO_CHANNEL, RequestContext
from support.figures import record_figure
from support.sessions.catalogue import CATALOGUE

ENVELOPE: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO: JsonObject = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "tests", "version": "1"},
}
EACH_ERA = pytest.mark.parametrize("is_modern", [False, True], ids=["handshake", "2026-07-28"])


async def hello(sdk_server: Server[EventsFeed]) -> tuple[Era, JsonObject]:
    """A handshake caller, and what it was told at the start."""
    peer = HandshakeEra(sdk_server, EventsFeed(None, NO_CHANNEL.send))
    return peer, await peer.serve(RequestContext(Request(1, "initialize", HELLO)))


async def list_result(*, is_modern: bool, takes_handles: bool = True) -> JsonObject:
    """The whole result of tools/list, as a caller of that era gets it."""
    sdk_server = build_sdk_server(takes_handles=takes_handles)
    peer: Era = ModernEra(sdk_server) if is_modern else (await hello(sdk_server))[0]
    return await peer.serve(RequestContext(Request(2, "tools/list", {"_meta": ENVELOPE} if is_modern else None)))


async def listed(*, is_modern: bool, takes_handles: bool = True) -> dict[str, JsonObject]:
    result = await list_result(is_modern=is_modern, takes_handles=takes_handles)
    return {tool["name"]: tool for tool in result["tools"]}


async def test_both_eras_are_told_of_the_configured_servers_at_the_start() -> None:
    spec = BackendSpec(name="notes", target=StdioTarget(command="x"), description="what we decided")
    sdk_server = build_sdk_server(servers=[spec])
    _, told = await hello(sdk_server)
    discovered = await ModernEra(sdk_server).serve(RequestContext(Request(1, "server/discover", {"_meta": ENVELOPE})))
    assert told["instructions"].endswith("\n- notes: what we decided")
    assert discovered["instructions"] == told["instructions"]


@EACH_ERA
async def test_tools_are_listed_with_title_annotations_and_load_hints(is_modern: bool) -> None:
    tools = await listed(is_modern=is_modern)
    assert [tool["title"] for tool in tools.values()] == [tool.title for tool in CATALOGUE.values()]
    for name, tool in CATALOGUE.items():
        assert tools[name]["annotations"] == tool.effect.annotations()
        assert tools[name]["_meta"] == tool.load.meta()


async def test_only_a_caller_that_can_name_a_session_sees_the_argument_for_it() -> None:
    """Those of 2026-07-28 over HTTP: for all others the connection is the session."""
    shown = await listed(is_modern=True)
    assert {name for name, tool in shown.items() if "session" not in tool["inputSchema"]["properties"]} == {
        "open_session"
    }
    for is_modern, takes_handles in ((False, True), (False, False), (True, False)):
        tools = await listed(is_modern=is_modern, takes_handles=takes_handles)
        assert {name for name, tool in tools.items() if "session" in tool["inputSchema"]["properties"]} == {
            "close_session"
        }


async def test_the_session_argument_is_described_in_the_tools_that_are_always_loaded() -> None:
    for name, tool in (await listed(is_modern=True)).items():
        if CATALOGUE[name].load.always:
            assert tool["inputSchema"]["properties"]["session"]["description"] == "Handle"


@pytest.mark.parametrize(
    ("is_modern", "most"), [(False, 15_500), (True, 16_500)], ids=["handshake", "2026-07-28 over HTTP"]
)
async def test_the_list_of_tools_costs_little_context(is_modern: bool, most: int) -> None:
    """Names, descriptions and input schemas are what a model pays for; the rest only travels."""
    result = await list_result(is_modern=is_modern)
    seen = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in result["tools"]]
    context, wire = len(encode({"tools": seen})), len(encode(result))
    record_figure(f"tools/list: {context} bytes of context, {wire} on the wire")
    assert context <= most
    assert wire <= 22_000
