"""`emceepee tools`, `read`, `prompt`, and `search`: list what servers offer, and get it."""

import argparse
import base64
import binascii
import re
import sys
from collections.abc import Sequence

from emceepee.cli.client_changes import say_json
from emceepee.cli.terminal import DONE, FAILED, Paint, complain, say
from emceepee.cli.use.call_arguments import BadArgument
from emceepee.cli.use.call_command import CommandCall
from emceepee.cli.use.command_session import list_all, run_with_tools
from emceepee.cli.use.progress_bar import ProgressBar
from emceepee.cli.use.result_text import block_text, contents_text
from emceepee.cli.use.tool_caller import CallFailed, ToolCaller, error_report
from emceepee.search.text import one_line
from emceepee.terminal_text import printable
from emceepee.wire.json_types import JsonObject

SUMMARY_LENGTH = 100


def run_query(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    match options.command:
        case "tools":
            return run_with_tools(options, lambda caller: _tools(options, caller))
        case "read" if options.uri is None:
            return run_with_tools(options, lambda caller: _list(options, caller, "resources", "uri"))
        case "read":
            return run_with_tools(options, lambda caller: _read(options, caller))
        case "prompt" if options.name is None:
            return run_with_tools(options, lambda caller: _list(options, caller, "prompts", "name"))
        case "prompt":
            return run_with_tools(options, lambda caller: _prompt(options, caller))
        case _:
            return run_with_tools(options, lambda caller: _search(options, caller))


async def _tools(options: argparse.Namespace, caller: ToolCaller) -> int:
    wanted: JsonObject = {"detail": "full"} | _tag(options)
    if options.server is not None:
        # fails for an unknown name and suggests similar ones
        await caller.value("get_server_status", {"server": options.server})
        wanted["server"] = f"^{re.escape(options.server)}$"
    if options.tool is not None:
        wanted["tool"] = f"^{re.escape(options.tool)}$"
    found = await list_all(caller, "list_tools", "tools", wanted)
    if options.tool is not None and not found["tools"] and not found["errors"]:
        raise CallFailed(
            f'"{options.server}" lists no tool "{options.tool}"; see them with: emceepee tools {options.server}'
        )
    if options.json:
        say_json(found)
    elif options.tool is not None:
        for tool in found["tools"]:
            _show_tool(tool)
    else:
        _show_entries(found["tools"], "name")
    return _outcome(found, options)


def _tag(options: argparse.Namespace) -> JsonObject:
    return {} if options.tag is None else {"tag": options.tag}


def _show_tool(tool: JsonObject) -> None:
    paint, schema = Paint.of(sys.stdout), tool.get("inputSchema")
    say(paint.bold(f"{tool['server']} {tool.get('name')}"))
    if tool.get("description"):
        say(str(tool["description"]).rstrip())
    schema = schema if isinstance(schema, dict) else {}
    properties, required = schema.get("properties"), schema.get("required") or ()
    for name, rule in (properties if isinstance(properties, dict) else {}).items():
        rule = rule if isinstance(rule, dict) else {}
        kind = rule.get("type") if isinstance(rule.get("type"), str) else "any"
        need = "" if name in required else ", optional"
        words = f"  {one_line(str(rule['description']), SUMMARY_LENGTH)}" if rule.get("description") else ""
        say(f"  {name}=… ({kind}{need}){words}")


def _show_entries(entries: Sequence[JsonObject], key: str) -> None:
    """Print entries grouped by server."""
    paint, latest = Paint.of(sys.stdout), None
    wide = min(max((len(str(entry.get(key))) for entry in entries), default=0), 40)
    for entry in entries:
        if entry.get("server") != latest:
            latest = entry.get("server")
            say(paint.bold(str(latest)))
        words = one_line(str(entry.get("description") or entry.get("title") or ""), SUMMARY_LENGTH)
        name = str(entry.get(key))
        say(f"  {name:<{wide}}  ", paint.faint(words)) if words else say(f"  {name}")


def _outcome(found: JsonObject, options: argparse.Namespace) -> int:
    """Print the errors of servers that could not be queried, and return the exit code."""
    for error in found["errors"]:
        complain(f"{error.get('server')}: {error.get('message')}")
    if found["errors"] and not options.json:
        complain("`emceepee doctor` reports problems of servers and how to fix them")
    return FAILED if found["errors"] else DONE


async def _list(options: argparse.Namespace, caller: ToolCaller, kind: str, key: str) -> int:
    found = await list_all(caller, f"list_{kind}", kind, {"server": options.server})
    if options.json:
        say_json(found)
    else:
        _show_entries(found[kind], key)
        if not found[kind] and not found["errors"]:
            say(f"{options.server} offers no {kind}.")
    return _outcome(found, options)


async def _read(options: argparse.Namespace, caller: ToolCaller) -> int:
    result = await _ask(options, caller, "read_resource", {"server": options.server, "uri": options.uri})
    if options.json:
        say_json(result)
        return DONE
    for contents in result.get("contents") or ():
        blob = contents.get("blob") if isinstance(contents, dict) else None
        if isinstance(blob, str) and not sys.stdout.isatty():
            try:
                data = base64.b64decode(blob)
            except binascii.Error:
                raise CallFailed(f"{options.uri} is invalid: its content is not base64") from None
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
        elif isinstance(contents, dict):
            text = contents_text(contents)
            sys.stdout.write(printable(text) if sys.stdout.isatty() else text)
            if not text.endswith("\n"):
                sys.stdout.write("\n")
    return DONE


async def _prompt(options: argparse.Namespace, caller: ToolCaller) -> int:
    pairs = [word.partition("=") for word in options.arguments]
    for key, sign, _ in pairs:
        if not sign or not key:
            raise BadArgument(f"expected key=value, found {key!r}")
    arguments = {key: value for key, _, value in pairs}
    request = {"server": options.server, "name": options.name, "arguments": arguments}
    result = await _ask(options, caller, "get_prompt", request)
    if options.json:
        say_json(result)
        return DONE
    paint = Paint.of(sys.stdout)
    for message in result.get("messages") or ():
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else [content]
        for block in blocks:
            text = block_text(block) if isinstance(block, dict) else str(block)
            say(paint.bold(str(message.get("role"))), f": {text}")
    return DONE


async def _ask(options: argparse.Namespace, caller: ToolCaller, tool: str, arguments: JsonObject) -> JsonObject:
    with ProgressBar(f"{options.server} {tool}", is_on=not options.json) as bar:
        result = await CommandCall(caller, bar).call(tool, arguments, options.timeout)
    if result.get("isError"):
        raise CallFailed(error_report(result))
    structured = result.get("structuredContent")
    return structured if isinstance(structured, dict) else {}


async def _search(options: argparse.Namespace, caller: ToolCaller) -> int:
    wanted: JsonObject = {"query": " ".join(options.words), "type": options.type, "limit": options.limit}
    wanted |= _tag(options)
    if options.server is not None:
        wanted["server"] = options.server
    found = await caller.value("codemode_search", wanted)
    if options.json:
        say_json(found)
    else:
        for entry in found.get("results") or ():
            kind = f"{entry['type']}: " if "type" in entry else ""
            shown = str(entry.get("signature"))
            if module := entry.get("module"):  # only scripts use the module name of a server
                shown = f"{entry.get('server')}{shown.removeprefix(str(module))}"
            say(f"{kind}{shown}")
        if found.get("note"):
            say(Paint.of(sys.stdout).faint(str(found["note"])))
    for error in found.get("errors") or ():
        complain(f"{error.get('server')}: {error.get('message')}")
    return DONE if found.get("results") else FAILED
