from typing import Any

import pytest

from emceepee.server.dispatch import BadCall
from emceepee.server.eras import HandshakeEra, ModernEra, era_for
from emceepee.server.events_feed import EventsFeed
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.requests import error_for
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Notification, Request
from emceepee.wire.json_types import JsonObject

ENVELOPE: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Ears:
    """Records the messages that were sent to the caller."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def __call__(self, message: Any) -> None:
        self.heard.append(message)


def feed(ears: Ears | None = None) -> EventsFeed:
    return EventsFeed(None, ears or Ears())


def request(method: str, key: int = 1, **params: Any) -> Request:
    return Request(key, method, params or None)


def modern(method: str, **params: Any) -> Request:
    return request(method, **params, _meta=ENVELOPE)


def hello(version: str) -> Request:
    return request("initialize", protocolVersion=version, capabilities={}, clientInfo={"name": "tests", "version": "1"})


@pytest.mark.parametrize(
    ("opening", "era"),
    [
        (hello("2025-11-25"), HandshakeEra),
        (request("ping"), HandshakeEra),
        (request("server/discover"), HandshakeEra),
        (request("tools/list", _meta={"progressToken": 1}), HandshakeEra),
        (modern("server/discover"), ModernEra),
        (modern("tools/list"), ModernEra),
        (modern("initialize"), HandshakeEra),
    ],
)
def test_the_first_request_decides_the_era(opening: Request, era: type) -> None:
    assert type(era_for(opening, ProtocolMethods(), feed())) is era


async def test_a_handshake_caller_agrees_on_its_version_and_lists_the_tools() -> None:
    era = HandshakeEra(ProtocolMethods(), feed())
    answer = await era.serve(RequestContext(hello("2025-06-18")))
    assert answer["protocolVersion"] == "2025-06-18"
    assert answer["serverInfo"]["name"] == "emceepee"
    assert "tools" in answer["capabilities"]
    await era.handle_notification(Notification("notifications/initialized", None))
    assert "execute_tool" in [
        tool["name"] for tool in (await era.serve(RequestContext(request("tools/list"))))["tools"]
    ]


@pytest.mark.parametrize(("version", "batches"), [("2025-03-26", True), ("2025-06-18", False), ("2024-11-05", False)])
async def test_only_protocol_version_2025_03_26_has_batches(version: str, batches: bool) -> None:
    era = HandshakeEra(ProtocolMethods(), feed())
    assert era.has_batches is False
    await era.serve(RequestContext(hello(version)))
    assert era.has_batches is batches


async def test_a_handshake_caller_must_initialize_before_it_calls_a_tool() -> None:
    era = HandshakeEra(ProtocolMethods(), feed())
    refusal = era.refusal(request("tools/call", 7, name="list_servers"))
    assert refusal == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32600, "message": "send initialize before tools/call"},
    }
    await era.serve(RequestContext(hello("2025-11-25")))
    assert era.refusal(request("tools/call", name="list_servers")) is None


def test_a_handshake_caller_cannot_change_to_the_modern_era() -> None:
    refusal = HandshakeEra(ProtocolMethods(), feed()).refusal(modern("tools/list"))
    assert refusal is not None
    assert refusal["error"]["code"] == -32600


def test_a_modern_caller_cannot_initialize() -> None:
    refusal = ModernEra(ProtocolMethods()).refusal(hello("2025-11-25"))
    assert refusal is not None
    assert refusal["error"]["code"] == -32022
    assert refusal["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2025-11-25"}


def test_a_modern_request_without_its_envelope_is_refused() -> None:
    era = ModernEra(ProtocolMethods())
    assert era.refusal(modern("tools/list")) is None
    for bare in (request("tools/list"), request("tools/call", name="list_servers"), request("tools/list", _meta={})):
        refusal = era.refusal(bare)
        assert refusal is not None
        assert refusal["id"] == 1
        assert "error" in refusal


async def test_a_modern_caller_discovers_and_lists_the_tools() -> None:
    era = ModernEra(ProtocolMethods())
    found = await era.serve(RequestContext(modern("server/discover")))
    assert "2026-07-28" in found["supportedVersions"]
    assert "execute_tool" in [tool["name"] for tool in (await era.serve(RequestContext(modern("tools/list"))))["tools"]]


def test_a_modern_result_is_marked_complete_and_names_emceepee() -> None:
    era = ModernEra(ProtocolMethods())
    finished = era.complete({"content": [], "zz": None})
    assert finished["resultType"] == "complete"
    assert finished["content"] == []
    assert finished["zz"] is None
    assert next(iter(finished["_meta"].values()))["name"] == "emceepee"


def test_a_modern_result_keeps_the_type_and_metadata_of_the_backend() -> None:
    era = ModernEra(ProtocolMethods())
    own: JsonObject = {"content": [], "_meta": {"mine": 1}, "resultType": "odd"}
    assert era.complete(own) == own


def test_a_handshake_result_is_unchanged() -> None:
    result: JsonObject = {"content": []}
    assert HandshakeEra(ProtocolMethods(), feed()).complete(result) is result


def test_a_bad_call_is_explained_and_an_internal_error_is_not() -> None:
    told = error_for(request("tools/call", 3), BadCall("Unknown tool 'x'"))
    assert told == {"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "Unknown tool 'x'"}}
    hidden = error_for(request("tools/list", 3), ZeroDivisionError("a secret detail"))
    assert hidden == {"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "Internal error"}}
