"""Rules that suggest which servers all sessions could share (`"sharing": "shared"`).

These are only hints: a program's state per client is not visible from outside.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from emceepee.wire.json_types import JsonObject

# Stateless servers: they compute, look something up, or call a web API with one key.
KNOWN = frozenset(
    {
        *("mcp-server-time", "mcp-server-fetch", "@upstash/context7-mcp", "tavily-mcp"),
        *("@brave/brave-search-mcp-server", "@modelcontextprotocol/server-brave-search"),
        *("@modelcontextprotocol/server-google-maps", "@notionhq/notion-mcp-server"),
    }
)
SHARING, SHARED = "sharing", "shared"
_BEFORE_A_NAME = frozenset({"run", "exec", "dlx", "tool", "x"})
_VERSION = re.compile(r"(?<=.)@[^/@]*$|[=<>~!\[].*$")


@dataclass(frozen=True, slots=True)
class Seen:
    """The result of a server's trial run."""

    tools: Sequence[JsonObject] = ()
    capabilities: JsonObject | None = None
    asked: Sequence[str] = ()  # methods of the requests that the server sent to its client


def known_package(entry: JsonObject) -> str | None:
    """Return the entry's package if it is known to be stateless, else None."""
    command, args = entry.get("command"), entry.get("args") or []
    if not isinstance(command, str) or not isinstance(args, list):
        return None
    words = [word for word in args if isinstance(word, str) and not word.startswith("-") and word not in _BEFORE_A_NAME]
    for word in (os.path.basename(command), *words[:1]):
        name = _VERSION.sub("", word).replace("_", "-").lower()
        if name in KNOWN:
            return name
    return None


def why_shareable(entry: JsonObject, seen: Seen | None = None) -> str | None:
    """Return the reason why all sessions could share the server, or None if none is known or one speaks against it."""
    if not isinstance(entry.get("command"), str) or SHARING in entry or entry.get("disabled") is True:
        return None
    if entry.get("roots") or entry.get("cwd") or (seen is not None and _is_personal(seen)):
        return None
    if (name := known_package(entry)) is not None:
        return f"{name} is known to be stateless"
    if seen is not None and seen.tools and all(map(_only_reads, seen.tools)):
        count = len(seen.tools)
        return (
            "its only tool is marked as read-only" if count == 1 else f"all its {count} tools are marked as read-only"
        )
    return None


def _is_personal(seen: Seen) -> bool:
    """Return whether the server sent requests to its client, or keeps subscriptions for it."""
    resources = (seen.capabilities or {}).get("resources")
    return bool(seen.asked) or (isinstance(resources, dict) and resources.get("subscribe") is True)


def _only_reads(tool: JsonObject) -> bool:
    annotations = tool.get("annotations")
    return isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
