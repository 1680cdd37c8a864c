"""Write the reference pages from the code: `python docs/generate.py`, or `--check` to compare without writing.

What the code declares is taken from there. Only what it does not say (what a tool returns, what a key is for) is said
here, next to the name it belongs to; a name that is gone, or a setting without words, is an error.
"""

import argparse
import ast
import inspect
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

from emceepee import config, errors
from emceepee.backends.child import INHERITED
from emceepee.backends.spec import RestartConfig, ServerEntry
from emceepee.cli import main as cli
from emceepee.state.limits import Limits
from emceepee.telemetry import logs
from emceepee.tools import catalogue
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration import Tool
from emceepee.tools.schema import compact_schema

REFERENCE = Path(__file__).parent / "reference"
MARK = "<!-- Written by docs/generate.py from the code. Change the code or the script, then run it again. -->"

RESULTS = {
    "add_server": "`{server: {name, url, status, protocolVersion, capabilities, …}, tools}`. `tools` is how many tools "
    "it has. If it cannot be connected, the error says why and nothing of it is left.",
    "remove_server": "`{removed}`, when its process and everything it started are gone.",
    "reconnect_server": "`{server: {…}}`",
    "list_servers": "`{servers: [{name, url, status, connected, connectedAt?, lastError?, healthStatus, "
    "protocolVersion?, tools?}]}`",
    "get_server_status": "One server as in `list_servers`, and `serverInfo`, `capabilities`, `instructions?`, "
    "`process?` (`pid`, `exitCode?`) and `stderrTail`, its last 20 lines.",
    "list_tools": "`{tools: [{server, …as the server sent it}], nextCursor?, errors?: [{server, message}]}`. A server "
    "that cannot be asked is named in `errors` and hides no other.",
    "execute_tool": "The server's own result, unchanged: every content block, `structuredContent`, `isError`, `_meta`.",
    "list_resources": "`{resources: [{server, …as the server sent it}], nextCursor?, errors?}`",
    "list_resource_templates": "`{resourceTemplates: [{server, …as the server sent it}], nextCursor?, errors?}`",
    "list_prompts": "`{prompts: [{server, …as the server sent it}], nextCursor?, errors?}`",
    "read_resource": "The server's own result: `{contents: […]}`.",
    "get_prompt": "The server's own result: `{description?, messages: […]}`.",
    "complete": "`{values, total?, hasMore?}`",
    "get_notifications": "`{notifications: [{server, method, timestamp, params?}]}`",
    "get_logs": "`{logs: [{server, timestamp, level, source, logger?, data}], dropped}`. With `clear`, exactly the "
    "lines returned are forgotten; `dropped` counts those lost to the buffer's limit since it was last asked.",
    "set_log_level": "`{servers}`: the names of those that obeyed.",
}

# What an argument means wherever it stands, with `?` where it is optional; a description in the code comes first.
ARGUMENTS = {
    "arguments": "Its arguments",
    "clear": "Forget the lines that are returned",
    "cursor": "The `nextCursor` of the reply before",
    "exclude_sources": "Leave these out",
    "level": "Lowest level",
    "limit": "At most this many, the newest",
    "name": "Its name",
    "server": "Server name",
    "server?": "Server name; all servers if left out",
    "sources": "Only these",
    "tool": "Tool name",
    "uri": "Its address",
}

TOP_KEYS = {
    "servers": "A list of servers, or an object of names and servers.",
    "mcpServers": "An object of names and servers, as other MCP programs write it.",
    "mcpClients": "The same, under the name that some programs use.",
    "limits": "An object of [limits](limits.md).",
    "roots": "Directories or `file://` URIs offered as roots to every server that has none of its own.",
    "logLevel": f"How much emceepee itself logs: {', '.join(logs.LEVELS)}.",
    "logFormat": f"How its log lines look: {', '.join(logs.FORMATS)}.",
}
SERVER_KEYS = {
    "type": "The transport. Without it, `url` tries Streamable HTTP first and the older SSE next.",
    "headers": "HTTP headers for every request to it.",
    "args": "Arguments of the program.",
    "env": "Variables for the program, besides those it [inherits](#what-a-child-process-inherits).",
    "cwd": "Working directory of the program.",
    "restartConfig": "See [below](#restartconfig).",
    "deniedTools": "Names or globs. Denied beats allowed.",
    "mode": "The protocol era: found out, or fixed.",
}
RESTART_KEYS = {
    "enabled": "Whether it is started again at all.",
    "maxAttempts": "How often in a row.",
    "baseDelayMs": "Before the first restart.",
    "maxDelayMs": "The longest delay.",
    "backoffMultiplier": "How much longer each delay is than the one before.",
}
CONFIG_ONLY_KEYS = {
    "disabled": "`true` leaves the entry out.",
    "serverUrl": "Another name for `url`.",
}


class Undocumented(Exception):
    """Something has no words, or words are left for something that is gone."""


def main() -> int:
    """Returns the exit code: 1 if a page was not up to date."""
    parser = argparse.ArgumentParser(description="Write the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    is_check = parser.parse_args().check
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        sys.stdout.write(f"{'out of date' if is_check else 'written'}: docs/reference/{path.name}\n")
        if not is_check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(pages()[path], "utf-8")
    return 1 if is_check and stale else 0


def pages() -> dict[Path, str]:
    """Every page, as it should be."""
    made = {"tools": tools(), "settings": settings(), "errors": error_codes(), "limits": limits(), "cli": commands()}
    return {REFERENCE / f"{name}.md": f"{MARK}\n\n{text.strip()}\n" for name, text in made.items()}


# Tools.


def tools() -> str:
    _no_strangers("RESULTS", RESULTS, {tool.name for tool in TOOLS})
    text = f"""
# Tools

The {len(TOOLS)} tools that a client of emceepee sees, the same on every transport and in every protocol version.

- emceepee's own results are one JSON object, as text and as `structuredContent`. Below, `?` marks keys that may be
  missing.
- A failure is `isError: true`, a sentence that says what to do next, and
  `structuredContent: {{error: {{code, message, details}}}}` with one of the [error codes](errors.md).
- Regular expressions are unanchored and in the [RE2 syntax](../decisions/0005-safe-regexes.md).
- Times are ISO-8601 in UTC with milliseconds.
"""
    for module in _families():
        own = [tool for tool in TOOLS if vars(module).get(tool.name) is tool]
        title = module.__name__.rpartition(".")[2].replace("_", " ").capitalize()
        text += f"\n## {title}\n\n{_first_line(module)}\n" + "".join(_tool(tool) for tool in own)
    return text


def _families() -> list[ModuleType]:
    """The modules that declare tools, in the order in which their tools are listed."""
    modules = [item for item in vars(catalogue).values() if inspect.ismodule(item)]

    def first(module: ModuleType) -> int:
        return min(index for index, tool in enumerate(TOOLS) if vars(module).get(tool.name) is tool)

    families = sorted(modules, key=first)
    homeless = {tool.name for tool in TOOLS} - {name for module in families for name in vars(module)}
    if homeless:
        raise Undocumented(f"no module of the catalogue declares {sorted(homeless)}")
    return families


def _tool(tool: Tool) -> str:
    if not tool.description:
        raise Undocumented(f"the tool {tool.name} has no docstring")
    text = f"\n### {tool.name}\n\n{tool.description}\n"
    if issubclass(tool.params, ServerEntry):
        text += "\nArguments: the keys of [a server](settings.md#a-server).\n"
    elif tool.input_schema["properties"]:
        text += "\n" + _schema_table("argument", tool.input_schema, ARGUMENTS)
    if tool.name in RESULTS:
        text += f"\nReturns: {RESULTS[tool.name]}\n"
    return text


# Settings.


def settings() -> str:
    _no_strangers("TOP_KEYS", TOP_KEYS, config._TOP_KEYS)
    _all_described("key of the configuration file", config._TOP_KEYS, TOP_KEYS)
    server, restart = compact_schema(ServerEntry), compact_schema(RestartConfig)
    for schema, words, what in ((server, SERVER_KEYS, "ServerEntry"), (restart, RESTART_KEYS, "RestartConfig")):
        described = [name for name, item in schema["properties"].items() if "description" in item]
        _no_strangers(what, words, schema["properties"])
        _all_described(f"key of {what}", schema["properties"], [*words, *described])
    aliases = ", ".join(f"`{alias}` for `{name}`" for alias, name in config._TYPE_ALIASES.items())
    inherited = ", ".join(f"`{name}`" for name in INHERITED)
    return f"""
# Settings

`emceepee --config FILE` reads a JSON file. Without the flag, the variable `{config.CONFIG_VARIABLE}` is used: the path
of such a file, or the JSON itself. Without either there are no servers at the start and every limit has its default.
Flags win over the file; see [the command line](cli.md).

## The file

{_table(["key", "meaning"], [[f"`{key}`", TOP_KEYS[key]] for key in config._TOP_KEYS])}
All three kinds of server list can stand in one file; a name may be used once. Unknown keys are ignored with a warning.
In every string, `${{NAME}}` is replaced by the variable of that name, and `${{NAME:-default}}` has something to fall
back on. A variable that is not set and has no default is an error that names the key.

## A server

The keys of an entry are the arguments of [`add_server`](tools.md#add_server). Give `url` or `command`, and only one
of them. The name `emceepee` is reserved.

{_schema_table("key", server, SERVER_KEYS)}
The file knows a few more, for the sake of lists written for other programs:

{_table(["key", "meaning"], [[f"`{key}`", words] for key, words in CONFIG_ONLY_KEYS.items()])}
`type` also takes {aliases}.

## restartConfig

Kept with the server. A process that ended stays `disconnected` until `reconnect_server` or the next start of emceepee.

{_schema_table("key", restart, RESTART_KEYS)}
## What a child process inherits

A stdio server gets these variables of emceepee's own environment, where they are set, and what its `env` says. Nothing
else: secrets are given by name.

{inherited}.
"""


# Errors, limits, command line.


def error_codes() -> str:
    rows = [[f"`{code}`", meaning] for code, meaning in _code_meanings().items()]
    return f"""
# Error codes

A tool that fails answers with `isError: true`. The text is a sentence for people and models; the same is in
`structuredContent.error` as `{{code, message, details}}`. Programs should look at `code`, which does not change.

{_table(["code", "meaning"], rows)}"""


def _code_meanings() -> dict[str, str]:
    """The codes and the docstrings under them, which Python itself does not keep."""
    tree = ast.parse(inspect.getsource(errors.ErrorCode))
    (declared,) = tree.body
    assert isinstance(declared, ast.ClassDef)
    meanings: dict[str, str] = {}
    for statement, after in zip(declared.body, [*declared.body[1:], None], strict=True):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Constant):
            continue
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            meanings[str(statement.value.value)] = " ".join(str(after.value.value).split())
    _all_described("error code", [str(code) for code in errors.ErrorCode], meanings)
    return meanings


def limits() -> str:
    rows = [
        [f"`{item.name}`", _limit_default(item.name, item.default), _meaning(item.metadata, item.name)]
        for item in fields(Limits)
    ]
    return f"""
# Limits

Every limit can be set under `limits` in the [configuration file](settings.md). Durations are seconds, sizes bytes.

{_table(["name", "default", "meaning"], rows)}"""


def _meaning(metadata: Mapping[str, Any], name: str) -> str:
    if not metadata.get("meaning"):
        raise Undocumented(f"the limit {name} has no meaning")
    words = str(metadata["meaning"])
    return words[0].upper() + words[1:] + "."


def _limit_default(name: str, default: Any) -> str:
    if name.endswith("_bytes"):
        for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
            if default >= size and default % size == 0:
                return f"{default} ({default // size} {unit})"
    return f"{default:g} s" if name.endswith("_seconds") else f"{default}"


def commands() -> str:
    parser = cli.build_parser()
    return f"""
# Command line

{_command(parser)}
Exit codes: 0 when the caller ended its input or a signal asked emceepee to stop, {cli.USAGE_ERROR} when the flags or
the configuration cannot be used; then standard error says why.
"""


def _command(parser: argparse.ArgumentParser) -> str:
    text = f"## {parser.prog}\n\n{parser.description or ''}\n\n"
    rows = []
    nested: list[argparse.ArgumentParser] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            nested += action.choices.values()
            continue
        names = ", ".join(f"`{name}`" for name in action.option_strings or [action.dest])
        if not action.help:
            raise Undocumented(f"{parser.prog} {names} has no help")
        values = " \\| ".join(f"`{choice}`" for choice in action.choices or ())
        rows.append([names, values or (f"`{action.metavar}`" if action.metavar else ""), action.help % vars(action)])
    return text + _table(["option", "value", "meaning"], rows) + "".join(f"\n{_command(item)}" for item in nested)


# Words and tables.


def _all_described(what: str, names: Iterable[str], described: Iterable[str]) -> None:
    if missing := sorted(set(names) - set(described)):
        raise Undocumented(f"no words for this {what}: {missing}; docs/generate.py or the code must say what it is")


def _no_strangers(what: str, described: Iterable[str], names: Iterable[str]) -> None:
    if strangers := sorted(set(described) - set(names)):
        raise Undocumented(f"{what} in docs/generate.py speaks of what is gone: {strangers}")


def _schema_table(first: str, schema: dict[str, Any], words: Mapping[str, str]) -> str:
    required = schema.get("required", [])
    rows = []
    for name, item in sorted(schema["properties"].items(), key=lambda entry: entry[0] not in required):
        default = "required" if name in required else _default(item)
        meaning = words.get(name if name in required else f"{name}?", words.get(name, ""))
        rows.append([f"`{name}`", _kind(item), default, item.get("description") or meaning])
    return _table([first, "type", "default", "meaning"], rows)


def _default(schema: dict[str, Any]) -> str:
    value = schema.get("default")
    return "" if value is None else f"`{value if isinstance(value, str) else json.dumps(value)}`"


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_kind(option) for option in schema["anyOf"])
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    bounds = [str(schema[key]) if key in schema else "" for key in ("minimum", "maximum")]
    return f"{kind} {'…'.join(bounds)}" if any(bounds) else kind


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace(chr(10), ' ') for cell in line)} |\n" for line in lines)


def _first_line(documented: object) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]


if __name__ == "__main__":
    raise SystemExit(main())
