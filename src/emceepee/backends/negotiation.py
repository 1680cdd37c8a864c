"""Negotiates the protocol era of a backend, once per link. No other module decides the era."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from emceepee import __version__
from emceepee.backends.link import LinkError, LinkFailure, RpcError, ServerFacts
from emceepee.backends.spec import Mode
from emceepee.backends.tasks.task_messages import TASK_METHODS, TASKS_EXTENSION
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LOG_LEVEL_META_KEY,
    MODERN_PROTOCOL_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)

CLIENT_INFO: JsonObject = {"name": "emceepee", "title": "emceepee", "version": __version__}
CLIENT_CAPABILITIES: JsonObject = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}
ROOTS_CAPABILITY: JsonObject = {"roots": {}}

# A handshake-era server that ignores unknown requests never answers `server/discover`; a slow-starting server answers
# it late. So `initialize` is sent as well after this time, and the first success wins.
PROBE_SECONDS = 5.0

_ABOUT_CALLS = TASK_METHODS | {"tools/call"}

AskServer = Callable[[str, JsonObject], Awaitable[JsonObject]]


class EndedByProbe(LinkError):
    """The server ended the link when it was probed for the era, as Python servers before mcp 1.9 do. Try a new link."""

    def __init__(self, end: LinkError) -> None:
        super().__init__(end.failure, str(end), status=end.status)


@dataclass(frozen=True, slots=True)
class NegotiationTerms:
    """How to open a link: the era, and the capabilities that we declare."""

    mode: Mode = "auto"
    capabilities: JsonObject = field(default_factory=lambda: CLIENT_CAPABILITIES)


def client_capabilities(*, has_roots: bool) -> JsonObject:
    """Return emceepee's capabilities for a backend.

    Roots are declared only if there are any: some servers read an empty list as access to nothing.
    """
    return CLIENT_CAPABILITIES | ROOTS_CAPABILITY if has_roots else CLIENT_CAPABILITIES


def envelope(version: str, capabilities: JsonObject) -> JsonObject:
    """Return the `_meta` of every request in the 2026-07-28 era."""
    return {
        PROTOCOL_VERSION_META_KEY: version,
        CLIENT_INFO_META_KEY: CLIENT_INFO,
        CLIENT_CAPABILITIES_META_KEY: capabilities,
    }


class Envelopes:
    """The envelopes of one link. Task support is declared only in requests that can be followed as tasks."""

    def __init__(self, version: str, capabilities: JsonObject) -> None:
        extensions = {**_mapping(capabilities.get("extensions")), TASKS_EXTENSION: {}}
        self._usual = envelope(version, capabilities)
        self._about_calls = envelope(version, {**capabilities, "extensions": extensions})

    def of(self, method: str) -> JsonObject:
        return self._about_calls if method in _ABOUT_CALLS else self._usual

    def set_log_level(self, level: str) -> None:
        self._usual[LOG_LEVEL_META_KEY] = self._about_calls[LOG_LEVEL_META_KEY] = level


async def negotiate(discover: AskServer, initialize: AskServer, terms: NegotiationTerms) -> ServerFacts:
    """Find the era that both sides speak. `discover` and `initialize` each send a request in the style of their era.

    Raises:
        EndedByProbe: the era can only be determined on another link.
        RpcError, LinkError: the backend refused both, or could not be reached.
    """
    if terms.mode != "legacy":
        if terms.mode != "auto":
            return await _discover(discover)
        try:
            return await _probe_eras(discover, initialize, terms)
        except LinkError as error:
            if has_ended(error):
                raise EndedByProbe(error) from error
            raise
    return await _initialize(initialize, terms)


async def _probe_eras(discover: AskServer, initialize: AskServer, terms: NegotiationTerms) -> ServerFacts:
    probe = asyncio.ensure_future(_discover(discover))
    try:
        await asyncio.wait({probe}, timeout=PROBE_SECONDS)
        if probe.done():
            return await _judge_probe(probe, initialize, terms)
        return await _race_eras(probe, initialize, terms)
    finally:
        probe.cancel()
        await asyncio.gather(probe, return_exceptions=True)


async def _judge_probe(
    probe: "asyncio.Future[ServerFacts]", initialize: AskServer, terms: NegotiationTerms
) -> ServerFacts:
    try:
        return probe.result()
    except LinkError as error:
        if is_outage(error):
            raise
        refusal: Exception = error
    except RpcError as error:
        refusal = error
    try:
        return await _initialize(initialize, terms)
    except RpcError as error:
        # A modern backend of an unknown version refuses both requests. The first refusal explains more.
        if isinstance(refusal, RpcError) and refusal.code == UNSUPPORTED_PROTOCOL_VERSION:
            raise refusal from error
        raise


async def _race_eras(
    probe: "asyncio.Future[ServerFacts]", initialize: AskServer, terms: NegotiationTerms
) -> ServerFacts:
    handshake = asyncio.ensure_future(_initialize(initialize, terms))
    try:
        done, waiting = await asyncio.wait({probe, handshake}, return_when=asyncio.FIRST_COMPLETED)
        for attempt in done:
            if attempt.exception() is None:
                return attempt.result()
        for attempt in waiting:
            return await attempt
        return handshake.result()
    finally:
        handshake.cancel()
        await asyncio.gather(handshake, return_exceptions=True)


async def _discover(discover: AskServer) -> ServerFacts:
    version = MODERN_PROTOCOL_VERSIONS[-1]
    try:
        answer = await discover("server/discover", {})
    except RpcError as error:
        # The version was refused, but is listed as supported: a gateway was not ready, or a different server is behind
        # it. Retry once.
        supported = _mapping(error.error.get("data")).get("supported")
        if error.code != UNSUPPORTED_PROTOCOL_VERSION or not isinstance(supported, list) or version not in supported:
            raise
        answer = await discover("server/discover", {})
    offered = answer.get("supportedVersions")
    if not isinstance(offered, list) or version not in offered:
        raise RpcError({"code": UNSUPPORTED_PROTOCOL_VERSION, "message": f"the server offers the versions {offered}"})
    stamp = _mapping(_mapping(answer.get("_meta")).get(SERVER_INFO_META_KEY))
    return _facts(answer, version, info=stamp or _mapping(answer.get("serverInfo")), is_modern=True)


async def _initialize(initialize: AskServer, terms: NegotiationTerms) -> ServerFacts:
    proposal = {
        "protocolVersion": LATEST_HANDSHAKE_VERSION,
        "capabilities": terms.capabilities,
        "clientInfo": CLIENT_INFO,
    }
    answer = await initialize("initialize", proposal)
    version = answer.get("protocolVersion")
    if version not in HANDSHAKE_PROTOCOL_VERSIONS:
        raise LinkError(LinkFailure.PROTOCOL, f"the server chose the unknown protocol version {str(version)[:40]!r}")
    return _facts(answer, version, info=_mapping(answer.get("serverInfo")), is_modern=False)


def _facts(answer: JsonObject, version: str, *, info: JsonObject, is_modern: bool) -> ServerFacts:
    instructions = answer.get("instructions")
    return ServerFacts(
        protocol_version=version,
        server_info=info,
        capabilities=_mapping(answer.get("capabilities")),
        instructions=instructions if isinstance(instructions, str) else None,
        is_modern=is_modern,
    )


def _mapping(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def is_outage(error: LinkError) -> bool:
    """Return whether the error is an outage or a missing login, which proves nothing about the era."""
    return error.failure in (LinkFailure.UNREACHABLE, LinkFailure.CLOSED) or error.status in (401, 403)


def has_ended(error: LinkError) -> bool:
    """Return whether an open link broke, or was ended by the backend."""
    return error.failure in (LinkFailure.UNREACHABLE, LinkFailure.CLOSED) and error.may_have_run


def mode_hint(mode: Mode, error: Exception) -> str:
    """Return advice about `mode` for a failed connection attempt, or an empty string if another mode would not help."""
    if mode == "auto":
        hint = ' (if it is an older server, set its mode to "legacy")'
        return hint if isinstance(error, TimeoutError) else ""
    if isinstance(error, LinkError) and (error.failure is LinkFailure.UNREACHABLE or error.status in (401, 403)):
        return ""
    return f' (only mode "{mode}" was tried; omit mode, and emceepee detects it)'
