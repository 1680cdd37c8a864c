import pytest

from emceepee.json_types import JsonObject
from emceepee.server.kernel import INSTRUCTIONS, CallerState, build_kernel
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


async def listed(*, is_modern: bool) -> dict[str, JsonObject]:
    """The tools as a caller of that era sees them."""

    def ignore(message: object) -> None:
        pass

    state = CallerState(None, ignore)
    peer: Peer = ModernPeer(build_kernel(), state) if is_modern else HandshakePeer(build_kernel(), state)
    if not is_modern:
        await peer.serve(Request(1, "initialize", HELLO), ignore)
    answer = await peer.serve(Request(2, "tools/list", {"_meta": ENVELOPE} if is_modern else None), ignore)
    return {tool["name"]: tool for tool in answer["tools"]}


def test_the_instructions_name_only_tools_that_there_are() -> None:
    named = {word.strip(".,") for word in INSTRUCTIONS.split() if "_" in word} - {"pending_client_action"}
    assert named
    assert named <= set(CATALOGUE)


@EACH_ERA
async def test_tools_are_listed_with_title_annotations_and_load_hints(is_modern: bool) -> None:
    tools = await listed(is_modern=is_modern)
    assert [tool["title"] for tool in tools.values()] == [tool.title for tool in CATALOGUE.values()]
    for name, tool in CATALOGUE.items():
        assert tools[name].get("annotations", {}) == tool.effect.annotations()
        assert tools[name]["_meta"] == tool.load.meta()
    assert "annotations" not in tools["execute_tool"]
