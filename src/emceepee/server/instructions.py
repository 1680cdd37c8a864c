"""Instructions for a new caller: the purpose of emceepee, how to use it, and the configured servers."""

from collections.abc import Iterable

from emceepee.backends.spec import BackendSpec, one_line
from emceepee.surface import Surface

PURPOSE_CHARS = 100  # of one server; some clients truncate all instructions to 2 kB
LIST_CHARS = 1000
_PURPOSE = "emceepee lets you use other MCP servers: their tools, resources and prompts. "
_FULL = (
    "list_tools with detail=summary shows all tools; list_tools for one tool shows its arguments; execute_tool "
    "calls it. list_servers shows the servers' status, add_server connects another. A slow call continues as a task: "
    "get_task_result waits for its result, await_activity for the next event; other replies carry new events as well "
    "(events_since_last_response). When a reply has pending_client_action, a server waits for an answer: "
    "ask the user and call respond_to_elicitation; a sampling request you answer yourself with respond_to_sampling."
)
_LITE = (
    "codemode_search finds tools and shows their arguments; execute_tool calls one. list_servers shows the servers' "
    "status, add_server connects another. A slow call continues as a task: get_task_result waits for its result, "
    "await_activity for the next event; other replies carry new events as well (events_since_last_response). When "
    "a reply has pending_client_action, a server waits for an answer: ask the user and call respond_to_elicitation. "
    'emceepee\'s other tools are reached by execute_tool(server="emceepee", tool=…, args=…).'
)
_CODEMODE = (
    "codemode_search finds tools and shows their arguments; codemode_execute runs a script that calls them, each or "
    "many at once, and returns only what you want to see. emceepee's own tools are reached in a script by "
    'mcp.tool(name, args): mcp.tool("list_servers", {}) shows the servers\' status. Replies carry new events '
    "(events_since_last_response). When a reply has pending_client_action, a server waits for an answer: ask the user "
    'and call mcp.tool("respond_to_elicitation", {…}).'
)
_HOW_TO = {Surface.FULL: _FULL, Surface.LITE: _LITE, Surface.CODEMODE: _CODEMODE}
_LISTER = {Surface.CODEMODE: 'mcp.tool("list_servers", {})'}


def instructions(servers: Iterable[BackendSpec], surface: Surface = Surface.FULL) -> str:
    """Describe the configured servers only by their configuration, never in a server's own words."""
    lines = [_line(spec) for spec in servers]
    words = how_to(surface)
    if not lines:
        return f"{words}\nNo server is configured yet."
    kept = _fitting(lines)
    lister = _LISTER.get(surface, "list_servers")
    rest = [f"and {len(lines) - len(kept)} more: {lister}"] if len(kept) < len(lines) else []
    return "\n".join([f"{words}\nConfigured servers:", *kept, *rest])


def how_to(surface: Surface) -> str:
    return _PURPOSE + _HOW_TO[surface]


def _line(spec: BackendSpec) -> str:
    name = one_line(spec.name, PURPOSE_CHARS)
    return f"- {name}: {one_line(spec.description, PURPOSE_CHARS)}" if spec.description else f"- {name}"


def _fitting(lines: list[str]) -> list[str]:
    room, kept = LIST_CHARS, []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept
