"""A server's description of itself and its results, in the format of the client's era."""

from typing import Any

from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    LATEST_HANDSHAKE_VERSION,
    LOG_LEVEL_META_KEY,
    MODERN_PROTOCOL_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)

CACHED = frozenset(
    {
        *("server/discover", "tools/list", "prompts/list", "resources/list"),
        *("resources/templates/list", "resources/read"),
    }
)
_OF_MODERN_RESULTS = ("resultType", "ttlMs", "cacheScope")
# The capability that a client must declare for each kind of question.
CAPABILITY_OF = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}


class ServerHello:
    """A server's description of itself. A recorded one may have any structure."""

    def __init__(self, told: JsonObject) -> None:
        self._told = told

    def initialized(self, params: JsonObject | None) -> JsonObject:
        """Return the result of `initialize`."""
        return _without_nothing(
            {
                "protocolVersion": self._version((params or {}).get("protocolVersion")),
                "capabilities": self._capabilities,
                "serverInfo": self.info,
                "instructions": self._instructions,
            }
        )

    def discovered(self) -> JsonObject:
        """Return the result of `server/discover`."""
        return _without_nothing(
            {
                "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
                "capabilities": self._capabilities,
                "instructions": self._instructions,
            }
        )

    @property
    def info(self) -> JsonObject:
        told = _mapping(self._told.get("serverInfo"))
        return {"name": "recorded", "version": "0"} | told

    @property
    def _capabilities(self) -> JsonObject:
        return _mapping(self._told.get("capabilities"))

    @property
    def _instructions(self) -> str | None:
        words = self._told.get("instructions")
        return words if isinstance(words, str) else None

    def _version(self, asked: Any) -> str:
        """Choose the version like the recorded server, as far as known: never a newer one than it chose."""
        chosen = self._told.get("protocolVersion")
        newest = chosen if chosen in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
        return str(asked) if asked in HANDSHAKE_PROTOCOL_VERSIONS and asked <= newest else newest


def modern_result(method: str, result: JsonObject, info: JsonObject) -> JsonObject:
    """Add the fields that every result of 2026-07-28 has."""
    meta = {SERVER_INFO_META_KEY: info} | _mapping(result.get("_meta"))
    cached = {"ttlMs": 0, "cacheScope": "private"} if method in CACHED else {}
    return {"resultType": "complete"} | cached | result | {"_meta": meta}


def handshake_result(result: JsonObject) -> JsonObject:
    """Remove the fields that did not exist before 2026-07-28."""
    if "resultType" not in result:
        return result
    return {key: value for key, value in result.items() if key not in _OF_MODERN_RESULTS}


def unsupported_version(params: JsonObject | None) -> JsonObject | None:
    """Return the error for a request with an unsupported version."""
    asked = _mapping((params or {}).get("_meta")).get(PROTOCOL_VERSION_META_KEY)
    if asked is None or asked in MODERN_PROTOCOL_VERSIONS:
        return None
    data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": str(asked)[:100]}
    return {"code": UNSUPPORTED_PROTOCOL_VERSION, "message": "Unsupported protocol version", "data": data}


def log_level(params: JsonObject | None) -> str | None:
    """Return the lowest log level that a request of 2026-07-28 asks for; None if it wants no logs."""
    level = _mapping((params or {}).get("_meta")).get(LOG_LEVEL_META_KEY)
    return level if isinstance(level, str) else None


def can_answer(capabilities: JsonObject, question: JsonObject) -> bool:
    needed = CAPABILITY_OF.get(str(question.get("method")))
    return needed is None or needed in capabilities


def _mapping(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _without_nothing(value: JsonObject) -> JsonObject:
    return {key: item for key, item in value.items() if item is not None}
