from typing import Any

import pytest
from mcp_types import methods
from pydantic import ValidationError as PydanticError

from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.server.eras import Era, HandshakeEra, ModernEra
from emceepee.server.events_feed import EventsFeed
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.surface import Surface, use_surface
from emceepee.tools.request_context import NO_CHANNEL, RequestContext
from emceepee.wire.codec import encode
from emceepee.wire.json_rpc import ProtocolError, Request
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import HANDSHAKE_PROTOCOL_VERSIONS, INVALID_REQUEST, METHOD_NOT_FOUND
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


async def hello(protocol: ProtocolMethods) -> tuple[Era, JsonObject]:
    """Return a handshake caller, and the instructions that it received."""
    peer = HandshakeEra(protocol, EventsFeed(None, NO_CHANNEL.send))
    return peer, await peer.serve(RequestContext(Request(1, "initialize", HELLO)))


async def list_result(*, is_modern: bool, takes_handles: bool = True) -> JsonObject:
    """Return the whole result of tools/list in the given era."""
    protocol = ProtocolMethods(takes_handles=takes_handles)
    peer: Era = ModernEra(protocol) if is_modern else (await hello(protocol))[0]
    return await peer.serve(RequestContext(Request(2, "tools/list", {"_meta": ENVELOPE} if is_modern else None)))


async def listed(*, is_modern: bool, takes_handles: bool = True) -> dict[str, JsonObject]:
    result = await list_result(is_modern=is_modern, takes_handles=takes_handles)
    return {tool["name"]: tool for tool in result["tools"]}


async def test_both_eras_show_the_configured_servers_at_the_start() -> None:
    spec = BackendSpec(name="notes", target=StdioTarget(command="x"), description="what we decided")
    protocol = ProtocolMethods(servers=[spec])
    _, told = await hello(protocol)
    discovered = await ModernEra(protocol).serve(RequestContext(Request(1, "server/discover", {"_meta": ENVELOPE})))
    assert told["instructions"].endswith("\n- notes: what we decided")
    assert discovered["instructions"] == told["instructions"]


METHODS_OF = {"tools": ["tools/list"], "resources": ["resources/list", "resources/templates/list", "resources/read"]}


@EACH_ERA
async def test_every_declared_capability_is_served(is_modern: bool) -> None:
    protocol = ProtocolMethods()
    if is_modern:
        told = await ModernEra(protocol).serve(RequestContext(Request(1, "server/discover", {"_meta": ENVELOPE})))
    else:
        _, told = await hello(protocol)
    subscribe = "subscriptions/listen" if is_modern else "resources/subscribe"
    assert told["capabilities"] == {name: told["capabilities"][name] for name in METHODS_OF}
    assert told["capabilities"]["resources"] == {"subscribe": True, "listChanged": False}
    methods = [*METHODS_OF["tools"], *METHODS_OF["resources"], subscribe]
    assert [name for name in methods if not protocol.has(name, is_modern=is_modern)] == []


@EACH_ERA
async def test_tools_are_listed_with_title_annotations_and_load_hints(is_modern: bool) -> None:
    tools = await listed(is_modern=is_modern)
    assert [tool["title"] for tool in tools.values()] == [tool.title for tool in CATALOGUE.values()]
    for name, tool in CATALOGUE.items():
        assert tools[name]["annotations"] == tool.effect.annotations()
        assert tools[name]["_meta"] == tool.load.meta()


async def test_only_a_caller_that_can_name_a_session_sees_the_session_argument() -> None:
    """These are the tools for 2026-07-28 over HTTP. For all other callers the connection is the session."""
    shown = await listed(is_modern=True)
    assert {name for name, tool in shown.items() if "session" not in tool["inputSchema"]["properties"]} == {
        "open_session"
    }
    for is_modern, takes_handles in ((False, True), (False, False), (True, False)):
        tools = await listed(is_modern=is_modern, takes_handles=takes_handles)
        assert {name for name, tool in tools.items() if "session" in tool["inputSchema"]["properties"]} == {
            "close_session"
        }


async def test_the_session_argument_is_described_only_in_tools_that_are_always_loaded() -> None:
    for name, tool in (await listed(is_modern=True)).items():
        if CATALOGUE[name].load.always:
            assert tool["inputSchema"]["properties"]["session"]["description"] == "Handle"


@pytest.mark.parametrize(("surface", "most"), [("full", 17_000), ("lite", 4000), ("codemode", 2000)])
@EACH_ERA
async def test_the_list_of_tools_costs_little_context(is_modern: bool, surface: str, most: int) -> None:
    """A model pays for names, descriptions, and input schemas; the rest is only transferred."""
    use_surface(Surface(surface))
    result = await list_result(is_modern=is_modern)
    seen = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in result["tools"]]
    context, wire = len(encode({"tools": seen})), len(encode(result))
    record_figure(f"tools/list, {surface}: {context} bytes of context, {wire} on the wire")
    assert context <= most
    assert wire <= 25_000


# The SDK decides which requests and results are valid. Only these tests import it.

ASKED: list[tuple[str, JsonObject | None]] = [
    ("ping", None),
    ("tools/list", None),
    ("tools/list", {"cursor": "x"}),
    ("tools/list", {"cursor": 5}),
    ("tools/list", {"_meta": {"progressToken": "t"}}),
    ("tools/list", {"_meta": {"progressToken": []}}),
    ("tools/list", {"_meta": {"progressToken": None}}),
    ("resources/list", {}),
    ("resources/templates/list", None),
    ("resources/read", {"uri": "emceepee://events"}),
    ("resources/read", {"uri": 5}),
    ("resources/read", {}),
    ("resources/subscribe", {"uri": "emceepee://events"}),
    ("resources/subscribe", None),
    ("resources/unsubscribe", {"uri": "emceepee://events"}),
    ("server/discover", {}),
    ("subscriptions/listen", {}),
    ("subscriptions/listen", {"notifications": {"toolsListChanged": "x"}}),
    ("subscriptions/listen", {"notifications": {"resourceSubscriptions": "x"}}),
    ("prompts/list", None),
    ("nonsense", None),
]
CAPABILITIES: list[Any] = [
    *(None, {"elicitation": {}}, {"elicitation": {"form": {}, "url": {}}}, {"elicitation": 5}),
    *({"elicitation": {"form": 5}}, {"roots": {"listChanged": True}}, {"roots": 5}, {"sampling": []}),
    *({"experimental": {"a": {}}}, {"experimental": {"a": 5}}, {"tasks": {}}, {"tasks": 7}, {"unknown": 5}),
    *({"elicitation": {"applyDefaults": True}}, {"elicitation": {"form": {}, "later": 5}}, {"elicitation": {"url": 5}}),
    *({"roots": {"listChanged": 1}}, {"roots": {"listChanged": "true"}}, {"roots": {"later": 5}}),
    *({"extensions": 5}, {"extensions": {"a": 5}}, {"extensions": {"a": {}}}),
    *({"sampling": {"tools": {}, "later": 5}}, {"sampling": {"tools": 5}}),
]
IMPLEMENTATIONS: list[Any] = [
    *(None, {}, {"name": "a"}, {"name": 5, "version": "1"}, {"name": "a", "version": "1", "title": 5}),
    *({"name": "a", "version": "1", "icons": [{"src": "x"}]}, {"name": "a", "version": "1", "icons": 5}),
]
HELLOS: list[JsonObject] = [
    HELLO,
    {},
    *({**HELLO, "protocolVersion": version} for version in ("2024-11-05", "2025-06-18", "1999", 5)),
    *({**HELLO, "capabilities": said} for said in CAPABILITIES),
    *({**HELLO, "clientInfo": said} for said in IMPLEMENTATIONS),
    {**HELLO, "_meta": 5},
]
ENVELOPES: list[JsonObject] = [
    ENVELOPE,
    {**ENVELOPE, "io.modelcontextprotocol/clientInfo": 5},
    {**ENVELOPE, "io.modelcontextprotocol/clientInfo": None},
    {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": 5},
    {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": {"elicitation": 5}},
    {**ENVELOPE, "io.modelcontextprotocol/logLevel": "info"},
    {**ENVELOPE, "io.modelcontextprotocol/logLevel": "loud"},
]


def is_refused(method: str, version: str, params: JsonObject | None) -> bool:
    """Return whether the SDK refuses the request."""
    try:
        methods.validate_client_request(method, version, params)
    except (KeyError, PydanticError):
        return True
    return False


async def outcome(era: Era, method: str, params: JsonObject | None) -> JsonObject | ProtocolError:
    try:
        return await era.serve(RequestContext(Request(1, method, params)))
    except ProtocolError as error:
        return error


def agrees(method: str, version: str, params: JsonObject | None, found: JsonObject | ProtocolError) -> None:
    if isinstance(found, ProtocolError):
        assert is_refused(method, version, params) or found.code == METHOD_NOT_FOUND
    else:
        assert not is_refused(method, version, params)
        stamp = {key: found[key] for key in ("_meta",) if key in found}
        assert methods.serialize_server_result(method, version, found) | stamp == found


@pytest.mark.parametrize("hello", HELLOS, ids=str)
async def test_an_initialize_request_is_accepted_or_refused_exactly_as_by_the_sdk(hello: JsonObject) -> None:
    found = await outcome(HandshakeEra(ProtocolMethods(), EventsFeed(None, NO_CHANNEL.send)), "initialize", hello)
    version = "2025-11-25" if isinstance(found, ProtocolError) else found["protocolVersion"]
    agrees("initialize", version, hello, found)


@pytest.mark.parametrize("version", HANDSHAKE_PROTOCOL_VERSIONS)
@pytest.mark.parametrize(("method", "params"), ASKED, ids=str)
async def test_a_handshake_request_is_accepted_or_refused_exactly_as_by_the_sdk(
    version: str, method: str, params: JsonObject | None
) -> None:
    era = HandshakeEra(ProtocolMethods(), EventsFeed(None, NO_CHANNEL.send))
    await outcome(era, "initialize", HELLO | {"protocolVersion": version})
    agrees(method, version, params, await outcome(era, method, params))


@pytest.mark.parametrize("envelope", ENVELOPES, ids=str)
@pytest.mark.parametrize(("method", "params"), ASKED, ids=str)
async def test_a_modern_request_is_accepted_or_refused_exactly_as_by_the_sdk(
    envelope: JsonObject, method: str, params: JsonObject | None
) -> None:
    asked = {**(params or {}), "_meta": {**envelope, **((params or {}).get("_meta") or {})}}
    agrees(method, "2026-07-28", asked, await outcome(ModernEra(ProtocolMethods()), method, asked))


@pytest.mark.parametrize("said", CAPABILITIES, ids=str)
async def test_modern_client_capabilities_are_accepted_or_refused_exactly_as_by_the_sdk(said: Any) -> None:
    asked = {"_meta": {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": said}}
    agrees("tools/list", "2026-07-28", asked, await outcome(ModernEra(ProtocolMethods()), "tools/list", asked))


@pytest.mark.parametrize(
    ("said", "modes"),
    [
        ({}, {"form"}),
        ({"applyDefaults": True}, {"form"}),
        ({"form": {"applyDefaults": True}, "later": 5}, {"form"}),
        ({"url": {}}, {"url"}),
        ({"form": {}, "url": {}}, {"form", "url"}),
        (None, set()),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
async def test_the_elicitation_modes_of_a_handshake_caller_come_from_its_capabilities(
    said: JsonObject | None, modes: set[str]
) -> None:
    era = HandshakeEra(ProtocolMethods(), EventsFeed(None, NO_CHANNEL.send))
    await outcome(era, "initialize", {**HELLO, "capabilities": {"elicitation": said}})
    assert era.elicitation_modes == modes


async def test_only_a_ping_is_allowed_before_the_handshake() -> None:
    era = HandshakeEra(ProtocolMethods(), EventsFeed(None, NO_CHANNEL.send))
    assert era.refusal(Request(1, "ping", None)) is None
    assert await outcome(era, "ping", None) == {}
    refused = era.refusal(Request(1, "tools/list", None))
    assert refused is not None
    assert refused["error"] == {"code": INVALID_REQUEST, "message": "send initialize before tools/list"}
    assert era.refusal(Request(1, "prompts/list", None)) is None
    unknown = await outcome(era, "prompts/list", None)
    assert isinstance(unknown, ProtocolError)
    assert unknown.code == METHOD_NOT_FOUND


async def test_a_refused_request_names_the_wrong_parameter() -> None:
    era, _ = await hello(ProtocolMethods())
    refused = await outcome(era, "tools/list", {"cursor": 5})
    assert str(refused) == "Invalid request parameters: Expected `str | null`, got `int` - at `$.cursor`"
