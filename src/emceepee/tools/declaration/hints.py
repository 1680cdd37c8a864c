"""Hints about a tool for clients: its effects, and when a model should see it."""

from dataclasses import dataclass

from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEffect:
    """The effects of a tool, as the protocol's four hints, with the protocol's defaults: the worst case."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False
    open_world: bool = True  # it contacts a server; False: it uses only emceepee's own records

    def annotations(self) -> JsonObject:
        """Return the most important hint, and the others only if they differ from a client's assumption.

        The second and third have no meaning for a tool that only reads.
        """
        if self.read_only:
            return {"readOnlyHint": True} | self._world()
        own: JsonObject = {"destructiveHint": self.destructive}
        return own | ({"idempotentHint": True} if self.idempotent else {}) | self._world()

    def _world(self) -> JsonObject:
        return {} if self.open_world else {"openWorldHint": False}


READS = ToolEffect(read_only=True)
READS_RECORDS = ToolEffect(read_only=True, open_world=False)
SETS = ToolEffect(destructive=False, idempotent=True)  # a repeated call has no further effect


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """When a client should load this tool, if it initially shows a model only some tools."""

    always: bool = False
    search: str | None = None  # words by which the tool is found, if it is not always loaded
    result_chars: int | None = None  # results up to this length should reach the model whole

    def meta(self) -> JsonObject:
        """Return the hints for `_meta`, under the keys that clients support."""
        hints = {
            "anthropic/alwaysLoad": self.always or None,
            "anthropic/searchHint": self.search,
            "anthropic/maxResultSizeChars": self.result_chars,
        }
        return {key: value for key, value in hints.items() if value is not None}


CORE = Load(always=True)


def found_by(words: str) -> Load:
    """Return the hint for a tool that clients load when a search finds these words."""
    return Load(search=words)
