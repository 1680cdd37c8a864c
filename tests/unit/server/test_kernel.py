import pytest
from mcp.server.lowlevel import Server

from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.json_types import JsonObject
from emceepee.server.kernel import CallerState, build_kernel
from emceepee.server.messages import Request
from emceepee.server.peers import HandshakePeer, ModernPeer, Peer
from emceepee.tools.catalogue import CATALOGUE

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


def ignore(message: object) -> None:
    pass


async def hello(kernel: Server[CallerState]) -> tuple[Peer, JsonObject]:
    """A handshake caller, and what it was told at the start."""
    peer = HandshakePeer(kernel, CallerState(None, ignore))
    return peer, await peer.serve(Request(1, "initialize", HELLO), ignore)


async def listed(*, is_modern: bool) -> dict[str, JsonObject]:
    """The tools as a caller of that era sees them."""
    kernel = build_kernel()
    peer: Peer = ModernPeer(kernel, CallerState(None, ignore)) if is_modern else (await hello(kernel))[0]
    answer = await peer.serve(Request(2, "tools/list", {"_meta": ENVELOPE} if is_modern else None), ignore)
    return {tool["name"]: tool for tool in answer["tools"]}


async def test_both_eras_are_told_of_the_configured_servers_at_the_start() -> None:
    spec = BackendSpec(name="notes", target=StdioTarget(command="x"), description="what we decided")
    kernel = build_kernel(servers=[spec])
    _, told = await hello(kernel)
    discovered = await ModernPeer(kernel, CallerState(None, ignore)).serve(
        Request(1, "server/discover", {"_meta": ENVELOPE}), ignore
    )
    assert told["instructions"].endswith("\n- notes: what we decided")
    assert discovered["instructions"] == told["instructions"]


@EACH_ERA
async def test_tools_are_listed_with_title_annotations_and_load_hints(is_modern: bool) -> None:
    tools = await listed(is_modern=is_modern)
    assert [tool["title"] for tool in tools.values()] == [tool.title for tool in CATALOGUE.values()]
    for name, tool in CATALOGUE.items():
        assert tools[name].get("annotations", {}) == tool.effect.annotations()
        assert tools[name]["_meta"] == tool.load.meta()
    assert "annotations" not in tools["execute_tool"]
