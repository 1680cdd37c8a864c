"""Which servers are reported as shareable by all sessions."""

from typing import Any

import pytest

from emceepee.clients.sharing_rules import Seen, known_package, why_shareable

READS: dict[str, Any] = {"name": "look", "annotations": {"readOnlyHint": True}}
WRITES: dict[str, Any] = {"name": "change", "annotations": {"readOnlyHint": False}}
PLAIN: dict[str, Any] = {"name": "do"}
TIME: dict[str, Any] = {"command": "uvx", "args": ["mcp-server-time"]}
OTHER: dict[str, Any] = {"command": "mine"}


@pytest.mark.parametrize(
    ("command", "args", "name"),
    [
        ("uvx", ["mcp-server-time"], "mcp-server-time"),
        ("uvx", ["mcp-server-time@1.2", "--local-timezone", "UTC"], "mcp-server-time"),
        ("uvx", ["--from", "mcp-server-fetch==2025.4.7", "mcp-server-fetch"], "mcp-server-fetch"),
        ("uv", ["tool", "run", "mcp-server-fetch"], "mcp-server-fetch"),
        ("python", ["-m", "mcp_server_time"], "mcp-server-time"),
        ("/opt/bin/mcp-server-time", [], "mcp-server-time"),
        ("npx", ["-y", "@upstash/context7-mcp@latest"], "@upstash/context7-mcp"),
        ("npx", ["-y", "@notionhq/notion-mcp-server"], "@notionhq/notion-mcp-server"),
        ("npx", ["-y", "@modelcontextprotocol/server-filesystem", "mcp-server-time"], None),
        ("npx", ["@upstash"], None),
        ("uvx", [1, None], None),
        (None, [], None),
    ],
)
def test_a_known_package_is_recognized_in_any_launch_command(command: Any, args: list[Any], name: str | None) -> None:
    assert known_package({"command": command, "args": args}) == name


@pytest.mark.parametrize(
    ("entry", "seen", "words"),
    [
        (TIME, None, "mcp-server-time is known to be stateless"),
        (OTHER, Seen((READS, READS)), "all its 2 tools are marked as read-only"),
        (OTHER, Seen((READS,), {"resources": {"listChanged": True}}), "its only tool is marked as read-only"),
    ],
)
def test_the_reasons_to_share_a_server_are_reported(entry: dict[str, Any], seen: Seen | None, words: str) -> None:
    assert words in (why_shareable(entry, seen) or "")


@pytest.mark.parametrize(
    ("entry", "seen"),
    [
        (OTHER, None),
        (OTHER, Seen()),
        (OTHER, Seen((READS, WRITES))),
        (OTHER, Seen((READS, PLAIN))),
        (TIME, Seen((READS,), asked=["roots/list"])),
        (TIME, Seen((READS,), {"resources": {"subscribe": True}})),
        (TIME | {"cwd": "/work"}, None),
        (TIME | {"roots": ["/work"]}, None),
        (TIME | {"sharing": "per-session"}, None),
        (TIME | {"disabled": True}, None),
        ({"url": "https://x.test/mcp"}, Seen((READS,))),
    ],
)
def test_a_server_without_reasons_or_with_objections_is_not_called_shareable(
    entry: dict[str, Any], seen: Seen | None
) -> None:
    assert why_shareable(entry, seen) is None
