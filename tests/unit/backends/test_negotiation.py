import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from emceepee.backends import negotiation
from emceepee.backends.link import LinkError, LinkFailure, RpcError, ServerFacts
from emceepee.backends.negotiation import (
    CLIENT_CAPABILITIES,
    EndedByProbe,
    NegotiationTerms,
    envelope,
    mode_hint,
    negotiate,
)
from emceepee.backends.spec import Mode
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import settle

MODERN: JsonObject = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "instructions": "be kind",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "modern", "version": "2"}},
}
LEGACY: JsonObject = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"prompts": {}},
    "serverInfo": {"name": "legacy", "version": "1"},
}
NOT_FOUND = RpcError({"code": -32601, "message": "Method not found"})
Outcome = JsonObject | Exception | None


class Backend:
    """Answers each of the two opening requests with a result, an error, or (None) silence."""

    def __init__(self, *, discover: Outcome = None, initialize: Outcome = None) -> None:
        self.asked: list[str] = []
        self.params: dict[str, JsonObject] = {}
        self.silent: dict[str, asyncio.Future[JsonObject]] = {}
        self.given_up: list[str] = []
        self.discover, self.initialize = self._ask(discover), self._ask(initialize)

    def _ask(self, outcome: Outcome) -> Callable[[str, JsonObject], Awaitable[JsonObject]]:
        async def ask(method: str, params: JsonObject) -> JsonObject:
            self.asked.append(method)
            self.params[method] = params
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                return outcome
            self.silent[method] = asyncio.get_running_loop().create_future()
            try:
                return await self.silent[method]
            except asyncio.CancelledError:
                self.given_up.append(method)
                raise

        return ask

    async def negotiate(self, mode: Mode = "auto") -> ServerFacts:
        async with asyncio.timeout(5):
            return await negotiate(self.discover, self.initialize, NegotiationTerms(mode))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "PROBE_SECONDS", 0.01)


async def test_a_backend_that_answers_the_probe_is_modern_and_never_initialized() -> None:
    backend = Backend(discover=MODERN)
    assert await backend.negotiate() == ServerFacts(
        protocol_version="2026-07-28",
        server_info={"name": "modern", "version": "2"},
        capabilities={"tools": {}},
        instructions="be kind",
        is_modern=True,
    )
    assert backend.asked == ["server/discover"]


async def test_a_backend_that_does_not_know_the_probe_is_initialized() -> None:
    backend = Backend(discover=NOT_FOUND, initialize=LEGACY)
    assert await backend.negotiate() == ServerFacts(
        protocol_version="2025-06-18",
        server_info={"name": "legacy", "version": "1"},
        capabilities={"prompts": {}},
        is_modern=False,
    )
    assert backend.params["initialize"]["protocolVersion"] == LATEST_HANDSHAKE_VERSION
    assert backend.params["initialize"]["clientInfo"]["name"] == "emceepee"


@pytest.mark.parametrize(
    "refusal",
    [
        RpcError({"code": -32600, "message": "send initialize first"}),
        RpcError({"code": -32022, "message": "unsupported"}),
        LinkError(LinkFailure.REFUSED, "HTTP 400", status=400),
        LinkError(LinkFailure.PROTOCOL, "odd"),
    ],
)
async def test_any_refusal_of_the_probe_leads_to_the_handshake(refusal: Exception) -> None:
    assert (await Backend(discover=refusal, initialize=LEGACY).negotiate()).is_modern is False


@pytest.mark.parametrize(
    "outage",
    [
        LinkError(LinkFailure.UNREACHABLE, "no route", may_have_run=False),
        LinkError(LinkFailure.REFUSED, "HTTP 401", status=401),
        LinkError(LinkFailure.REFUSED, "HTTP 403", status=403),
    ],
)
async def test_a_connection_failure_does_not_decide_the_era(outage: Exception) -> None:
    backend = Backend(discover=outage, initialize=LEGACY)
    with pytest.raises(LinkError) as caught:
        await backend.negotiate()
    assert caught.value is outage
    assert backend.asked == ["server/discover"]


@pytest.mark.parametrize("failure", [LinkFailure.UNREACHABLE, LinkFailure.CLOSED])
async def test_a_link_that_ends_during_the_probe_raises_ended_by_probe(failure: LinkFailure) -> None:
    backend = Backend(discover=LinkError(failure, "it exited"), initialize=LEGACY)
    with pytest.raises(EndedByProbe, match="it exited") as caught:
        await backend.negotiate()
    assert (caught.value.failure, backend.asked) == (failure, ["server/discover"])


@pytest.mark.usefixtures("impatient")
async def test_a_server_that_exits_on_the_handshake_after_the_probe_raises_ended_by_probe() -> None:
    backend = Backend(discover=None, initialize=None)
    negotiating = asyncio.create_task(backend.negotiate())
    async with asyncio.timeout(5):
        while "initialize" not in backend.silent:
            await settle()
        for waiting in backend.silent.values():
            waiting.set_exception(LinkError(LinkFailure.CLOSED, "it exited"))
        with pytest.raises(EndedByProbe, match="it exited"):
            await negotiating


@pytest.mark.parametrize(
    ("mode", "error", "is_named"),
    [
        ("legacy", LinkError(LinkFailure.CLOSED, "it exited"), True),
        ("2026-07-28", NOT_FOUND, True),
        ("2026-07-28", TimeoutError(), True),
        ("2026-07-28", LinkError(LinkFailure.UNREACHABLE, "no route"), False),
        ("legacy", LinkError(LinkFailure.REFUSED, "HTTP 401", status=401), False),
        ("auto", TimeoutError(), True),
        ("auto", LinkError(LinkFailure.CLOSED, "it exited"), False),
    ],
)
def test_the_error_names_the_mode_setting_if_another_mode_could_help(
    mode: Mode, error: Exception, is_named: bool
) -> None:
    assert ("mode" in mode_hint(mode, error)) is is_named


@pytest.mark.parametrize("versions", [["2027-01-01"], [], None, "2026-07-28"])
async def test_a_modern_backend_without_a_common_version_is_reported_with_its_versions(versions: Any) -> None:
    backend = Backend(discover={**MODERN, "supportedVersions": versions}, initialize=NOT_FOUND)
    with pytest.raises(RpcError, match="the server offers the versions") as caught:
        await backend.negotiate()
    assert str(versions) in str(caught.value)
    assert backend.asked == ["server/discover", "initialize"]


async def test_a_backend_that_refuses_both_eras_is_reported_with_its_handshake_error() -> None:
    backend = Backend(discover=NOT_FOUND, initialize=RpcError({"code": -1, "message": "go away"}))
    with pytest.raises(RpcError, match="go away"):
        await backend.negotiate()


async def test_a_handshake_with_an_unknown_version_fails() -> None:
    backend = Backend(discover=NOT_FOUND, initialize={**LEGACY, "protocolVersion": "1999-01-01"})
    with pytest.raises(LinkError, match="unknown protocol version '1999-01-01'") as caught:
        await backend.negotiate()
    assert caught.value.failure is LinkFailure.PROTOCOL


@pytest.mark.usefixtures("impatient")
async def test_a_backend_that_ignores_the_probe_is_initialized_and_the_probe_is_cancelled() -> None:
    backend = Backend(discover=None, initialize=LEGACY)
    assert (await backend.negotiate()).is_modern is False
    assert backend.given_up == ["server/discover"]


@pytest.mark.usefixtures("impatient")
async def test_a_slow_modern_backend_wins_even_if_it_ignores_the_handshake() -> None:
    backend = Backend(discover=None, initialize=None)
    negotiating = asyncio.create_task(backend.negotiate())
    async with asyncio.timeout(5):
        while "initialize" not in backend.silent:
            await settle()
        backend.silent["server/discover"].set_result(MODERN)
        assert (await negotiating).is_modern is True
    assert backend.given_up == ["initialize"]


@pytest.mark.usefixtures("impatient")
async def test_a_slow_modern_backend_wins_even_if_it_refused_the_handshake() -> None:
    backend = Backend(discover=None, initialize=NOT_FOUND)
    negotiating = asyncio.create_task(backend.negotiate())
    async with asyncio.timeout(5):
        while "initialize" not in backend.asked:
            await settle()
        await settle()
        backend.silent["server/discover"].set_result(MODERN)
        assert (await negotiating).is_modern is True


@pytest.mark.usefixtures("impatient")
async def test_a_late_refusal_of_the_probe_still_leaves_the_handshake_its_time() -> None:
    backend = Backend(discover=None, initialize=None)
    negotiating = asyncio.create_task(backend.negotiate())
    async with asyncio.timeout(5):
        while "initialize" not in backend.silent:
            await settle()
        backend.silent["server/discover"].set_exception(NOT_FOUND)
        await settle()
        backend.silent["initialize"].set_result(LEGACY)
        assert (await negotiating).is_modern is False


@pytest.mark.usefixtures("impatient")
async def test_cancelling_the_negotiation_cancels_both_attempts() -> None:
    backend = Backend(discover=None, initialize=None)
    negotiating = asyncio.create_task(backend.negotiate())
    async with asyncio.timeout(5):
        while "initialize" not in backend.silent:
            await settle()
    negotiating.cancel()
    await settle()
    assert negotiating.cancelled()
    assert sorted(backend.given_up) == ["initialize", "server/discover"]


async def test_the_mode_legacy_never_probes() -> None:
    backend = Backend(discover=MODERN, initialize=LEGACY)
    assert (await backend.negotiate("legacy")).is_modern is False
    assert backend.asked == ["initialize"]


async def test_a_mode_with_the_modern_version_never_falls_back_to_the_handshake() -> None:
    backend = Backend(discover=NOT_FOUND, initialize=LEGACY)
    with pytest.raises(RpcError):
        await backend.negotiate("2026-07-28")
    assert backend.asked == ["server/discover"]


@pytest.mark.parametrize("odd", [None, [], "x", 5])
async def test_invalid_parts_of_a_negotiation_response_are_ignored(odd: Any) -> None:
    discovered = await Backend(
        discover={**MODERN, "capabilities": odd, "instructions": 5, "_meta": odd, "serverInfo": {"name": "old place"}}
    ).negotiate()
    assert (discovered.capabilities, discovered.instructions) == ({}, None)
    assert discovered.server_info == {"name": "old place"}
    initialized = await Backend(initialize={**LEGACY, "serverInfo": odd}).negotiate("legacy")
    assert initialized.server_info == {}


def test_the_request_envelope_contains_the_protocol_version_and_the_client_info() -> None:
    made = envelope("2026-07-28", CLIENT_CAPABILITIES)
    assert made["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert made["io.modelcontextprotocol/clientInfo"]["name"] == "emceepee"
    assert "io.modelcontextprotocol/clientCapabilities" in made
    made["x"] = 1
    assert "x" not in envelope("2026-07-28", CLIENT_CAPABILITIES)
