"""Behavior of particular clients that the protocol does not define, by the name that they send in `initialize`.

The values were measured with the clients' own programs. Any other client gets the behavior that the protocol defines.
"""

from dataclasses import dataclass
from functools import lru_cache

from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTraits:
    """The traits of one client. The defaults are for a client that was not measured."""

    unclear_reason: str | None = None  # its reason for a cancellation, both by a person and by its timeout
    shows_both_copies: bool = False  # its model sees blocks and structured content, so a notice in both costs twice


ORDINARY = ClientTraits()
# Timeouts in configurations are mostly multiples of five seconds; the default of Codex is 300, and it was 50 to 105 ms
# late. One in 14 interruptions by a person falls into this window, and then leaves a running task behind.
TIMEOUT_STEP, EARLIEST, LATEST = 5.0, -0.1, 0.25
CODEX_TURN = "x-codex-turn-metadata"  # in `_meta` of each call; `turn_trigger` is `user` in its terminal interface
_BY_BEGINNING = {
    "codex-mcp-client": ClientTraits(unclear_reason="MCP request cancelled by caller"),  # Codex 0.169
    "qwen-cli-mcp-client": ClientTraits(shows_both_copies=True),  # qwen-code 0.24; the server's name follows
    "@cline/core": ClientTraits(shows_both_copies=True),  # Cline CLI 3.0
    "cline": ClientTraits(shows_both_copies=True),  # Cline in an editor
}


@lru_cache(maxsize=256)  # a client sends the same name in every request
def traits_of(name: str | None) -> ClientTraits:
    """Return the traits of the client with this name."""
    said = (name or "").lower()
    return next((traits for beginning, traits in _BY_BEGINNING.items() if said.startswith(beginning)), ORDINARY)


def is_started_by_program(params: JsonObject | None) -> bool:
    """Return whether a request is from `codex exec`, where no person watches and stops a single call."""
    meta = (params or {}).get("_meta")
    turn = meta.get(CODEX_TURN) if isinstance(meta, dict) else None
    return isinstance(turn, dict) and turn.get("turn_trigger") == "exec"


def is_about_a_timeout(seconds: float) -> bool:
    """Return whether a client's timeout, and not a person, probably ended a request after this time."""
    nearest = round(seconds / TIMEOUT_STEP) * TIMEOUT_STEP
    return nearest > 0 and EARLIEST <= seconds - nearest <= LATEST
