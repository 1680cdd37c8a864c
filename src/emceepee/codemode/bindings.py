"""The methods of `mcp` that a script can call, the emceepee tool behind each method, and the return values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from emceepee.bounds.budget import Budget
from emceepee.codemode.values import as_json
from emceepee.wire.json_types import JsonObject

MODULE = "mcp"
LOG, SLEEP, OWN_TOOL = "log", "sleep", "tool"
CALL_TOOL = "execute_tool"
THIS_TOOL = "codemode_execute"


class BadScriptCall(Exception):
    """The script passed invalid arguments, or made a call that scripts may not make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """One method of `mcp`. `tool` is the emceepee tool that answers; `key` names the returned field in its result."""

    tool: str
    parameters: tuple[str, ...] = ()
    stub: str
    key: str | None = None
    defaults: tuple[tuple[str, Any], ...] = ()


_ANY_SERVER = "server: str | None = ..."
BINDINGS = {
    "list_servers": Binding(tool="list_servers", key="servers", stub="() -> list[dict[str, Any]]"),
    "list_tools": Binding(
        tool="list_tools",
        key="tools",
        parameters=("server", "tool", "detail"),
        defaults=(("detail", "full"),),
        stub="(server: str = ..., tool: str = ..., detail: Literal['names', 'summary', 'full'] = ...) "
        "-> list[dict[str, Any]]",
    ),
    "call_tool": Binding(
        tool=CALL_TOOL,
        parameters=("server", "tool", "args"),
        stub="(server: str, tool: str, args: dict[str, Any] | None = ...) -> Any",
    ),
    "list_resources": Binding(
        tool="list_resources",
        key="resources",
        parameters=("server",),
        stub=f"({_ANY_SERVER}) -> list[dict[str, Any]]",
    ),
    "list_resource_templates": Binding(
        tool="list_resource_templates",
        key="resourceTemplates",
        parameters=("server",),
        stub=f"({_ANY_SERVER}) -> list[dict[str, Any]]",
    ),
    "read_resource": Binding(tool="read_resource", parameters=("server", "uri"), stub="(server: str, uri: str) -> Any"),
    "list_prompts": Binding(
        tool="list_prompts",
        key="prompts",
        parameters=("server",),
        stub=f"({_ANY_SERVER}) -> list[dict[str, Any]]",
    ),
    "get_prompt": Binding(
        tool="get_prompt",
        parameters=("server", "name", "arguments"),
        stub="(server: str, name: str, arguments: dict[str, Any] | None = ...) -> list[dict[str, Any]]",
    ),
}


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


METHODS = {alias: name for name in (*BINDINGS, OWN_TOOL, SLEEP, LOG) for alias in (name, camel_case(name))}


def mcp_stub() -> str:
    """Return the type stub of the module `mcp`, for the type check."""
    signatures = {name: binding.stub for name, binding in BINDINGS.items()} | {
        OWN_TOOL: "(name: str, args: dict[str, Any] | None = ...) -> Any",
        SLEEP: "(seconds: float) -> None",
    }
    lines = [f"async def {alias}{signatures[name]}: ..." for alias, name in METHODS.items() if name != LOG]
    return "\n".join(
        [
            "from typing import Any, Literal",
            *lines,
            "def log(*values: Any) -> None: ...",
            "",
        ]
    )


def bind(names: Sequence[str], args: Sequence[Any], kwargs: JsonObject, budget: Budget) -> JsonObject:
    """Return the arguments by name, without arguments that are None. Raises: BadScriptCall, NotJson, OverBudget."""
    if len(args) > len(names):
        raise BadScriptCall(f"takes at most {len(names)} arguments ({', '.join(names)}), but {len(args)} were given")
    given: JsonObject = dict(zip(names, args, strict=False))
    if twice := sorted(given.keys() & kwargs.keys()):
        raise BadScriptCall(f"got {twice[0]} twice")
    shown: JsonObject = as_json({name: value for name, value in (given | kwargs).items() if value is not None}, budget)
    return shown


# Return values: the content of an answer without its MCP envelope.


def said(result: JsonObject) -> Any:
    """Return a tool result's structured content, else its text; a list if it contains more than text."""
    structured = result.get("structuredContent")
    if structured is not None:
        return _unwrapped(result, structured)
    content = result.get("content")
    return _joined([_block(block) for block in content] if isinstance(content, list) else [])


def _unwrapped(result: JsonObject, structured: Any) -> Any:
    """Unwrap a result of FastMCP, which wraps values that are not objects and marks them in `_meta`."""
    meta = result.get("_meta")
    mark = meta.get("fastmcp") if isinstance(meta, dict) else None
    is_wrapped = isinstance(mark, dict) and mark.get("wrap_result") is True
    return (
        structured["result"] if is_wrapped and isinstance(structured, dict) and "result" in structured else structured
    )


def read(contents: Any) -> Any:
    """Return a resource's text; a list if any part is not text."""
    return _joined([_part(part) for part in contents] if isinstance(contents, list) else [])


def spoken(messages: Any) -> list[JsonObject]:
    """Return a prompt's messages, each as its role and content."""
    found = [item for item in messages if isinstance(item, dict)] if isinstance(messages, list) else []
    return [{"role": item.get("role"), "content": _block(item.get("content"))} for item in found]


def _joined(parts: list[Any]) -> Any:
    return "\n".join(parts) if all(isinstance(part, str) for part in parts) else parts


def _block(block: Any) -> Any:
    if isinstance(block, list):
        return _joined([_block(item) for item in block])
    if not isinstance(block, dict):
        return block
    if block.get("type") == "text":
        return block.get("text", "")
    return _part(block["resource"]) if block.get("type") == "resource" and "resource" in block else block


def _part(part: Any) -> Any:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else part
