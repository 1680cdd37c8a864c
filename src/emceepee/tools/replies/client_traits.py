"""Behavior of particular clients that the protocol does not define, by the name that they send in `initialize`.

Measured with the clients' own programs. A client that is not named here gets what the protocol promises everyone.
"""

from dataclasses import dataclass
from functools import lru_cache

from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTraits:
    """The defaults are those of a client that nobody measured."""

    unclear_reason: str | None = None  # why it cancels a request, whether a person stopped it or its time is over
    shows_both_copies: bool = False  # a model sees blocks and structured content, so that a notice in both costs twice


ORDINARY = ClientTraits()
# Timeouts in configurations are mostly multiples of five seconds; the default of Codex is 300, and it was 50 to 105 ms
# late. A person's interruption falls into this window once in 14 times, and then leaves a task.
TIMEOUT_STEP, EARLIEST, LATEST = 5.0, -0.1, 0.25
CODEX_TURN = "x-codex-turn-metadata"  # in `_meta` of each call; `turn_trigger` is `user` in its terminal interface
_BY_BEGINNING = {
    "codex-mcp-client": ClientTraits(unclear_reason="MCP request cancelled by caller"),  # Codex 0.169
    "qwen-cli-mcp-client": ClientTraits(shows_both_copies=True),  # qwen-code 0.24; the server's name follows
    "@cline/core": ClientTraits(shows_both_copies=True),  # Cline CLI 3.0
    "cline": ClientTraits(shows_both_copies=True),  # Cline in an editor
}


@lru_cache(maxsize=256)  # a client says the same in every request
def traits_of(name: str | None) -> ClientTraits:
    """Return what is known of the client that calls itself so."""
    said = (name or "").lower()
    return next((traits for beginning, traits in _BY_BEGINNING.items() if said.startswith(beginning)), ORDINARY)


def is_started_by_program(params: JsonObject | None) -> bool:
    """Return whether a request is from `codex exec`, where no person watches and stops a single call."""
    meta = (params or {}).get("_meta")
    turn = meta.get(CODEX_TURN) if isinstance(meta, dict) else None
    return isinstance(turn, dict) and turn.get("turn_trigger") == "exec"


def is_about_a_timeout(seconds: float) -> bool:
    """Return whether a request that took so long was probably ended by its client's timeout, and not by a person."""
    nearest = round(seconds / TIMEOUT_STEP) * TIMEOUT_STEP
    return nearest > 0 and EARLIEST <= seconds - nearest <= LATEST
