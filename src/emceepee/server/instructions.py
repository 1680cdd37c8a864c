"""What a caller is told at the start: what emceepee is for, how to go about it, and which servers are configured."""

from collections.abc import Iterable

from emceepee.backends.spec import BackendSpec, one_line

PURPOSE_CHARS = 100  # of one server; some clients cut all instructions at 2 kB
LIST_CHARS = 1000
HOW_TO = (
    "emceepee lets you use other MCP servers: their tools, resources and prompts. list_tools with detail=summary shows "
    "what there is; list_tools for one tool shows its arguments; execute_tool calls it. list_servers tells how the "
    "servers are, add_server connects another. A slow call goes on as a task: get_task_result waits for its result, "
    "await_activity for whatever happens next; other replies carry what is new, too (events_since_last_response). When "
    "a reply has pending_client_action, a server waits for an answer: "
    "ask the user and call respond_to_elicitation; a sampling request you answer yourself with respond_to_sampling."
)


def instructions(servers: Iterable[BackendSpec]) -> str:
    """Of the configured servers only what their configuration says, never a server's own words."""
    lines = [_line(spec) for spec in servers]
    if not lines:
        return f"{HOW_TO}\nNo server is configured yet."
    kept = _fitting(lines)
    rest = [f"and {len(lines) - len(kept)} more: list_servers"] if len(kept) < len(lines) else []
    return "\n".join([f"{HOW_TO}\nConfigured servers:", *kept, *rest])


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
