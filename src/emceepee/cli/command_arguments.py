"""Flags of the commands that use servers or watch a running emceepee. Their implementations are loaded later."""

import argparse
from pathlib import Path

from emceepee.cli.keep.completion_command import SHELLS
from emceepee.cli.setup_arguments import seconds
from emceepee.paths import STATE_VARIABLE, TOKEN_VARIABLE

EXIT_CODES = "Exit codes: 0 success, 1 failure or an error result, 2 usage error."
USUAL_URL = "http://127.0.0.1:8080"
CALL_SECONDS = 600.0
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
SEARCH_TYPES = ("tools", "resources", "prompts", "servers", "all")
MOST_RESULTS = 50
INSTANT, RECORDED = SPEEDS = ("instant", "recorded")
LOOPBACK = "127.0.0.1"


# Positional arguments that may also follow a flag, which argparse does not support: the last ones of these commands.
_LATE = {"tools": ("tool",), "call": ("arguments",), "read": ("uri",), "prompt": ("name", "arguments")}


def take_late(options: argparse.Namespace, rest: list[str]) -> list[str]:
    """Assign leftover words to the command's positional arguments, and return the words that remain."""
    for name in _LATE.get(options.command, ()):
        if any(word.startswith("-") for word in rest):
            break
        held = getattr(options, name)
        if isinstance(held, list):
            setattr(options, name, held + rest)
            rest = []
        elif held is None and rest:
            setattr(options, name, rest[0])
            rest = rest[1:]
    return rest


def add_use_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `tools`, `call`, `read`, `prompt`, and `search`."""
    tools = _add(commands, "tools", "List servers' tools, or show one of them in full.")
    tools.add_argument("server", nargs="?", metavar="SERVER", help="only this server's tools (default: all servers)")
    tools.add_argument("tool", nargs="?", metavar="TOOL", help="only this tool, with its arguments")
    tools.add_argument("--tag", metavar="TAG", help="only of servers with this tag")
    _add_record(tools)
    _add_reach(tools)

    call = _add(
        commands,
        "call",
        "Call a server's tool.",
        "Arguments are typed by the tool's schema: numbers, true or false, text, and JSON for lists and objects. The "
        "server's questions during the call appear at the terminal.",
    )
    call.add_argument("server", metavar="SERVER", help="its name")
    call.add_argument("tool", metavar="TOOL", help="the tool's name")
    call.add_argument(
        "arguments",
        nargs="*",
        metavar="KEY=VALUE|@FILE",
        help="an argument, or a file of JSON with all of them; @- is standard input",
    )
    call.add_argument("--args", metavar="JSON", help="all arguments as one object")
    _add_timeout(call)
    _add_record(call)
    _add_reach(call)

    read = _add(commands, "read", "Read a resource of a server, or list its resources.")
    read.add_argument("server", metavar="SERVER", help="its name")
    read.add_argument("uri", nargs="?", metavar="URI", help="which one (default: list them)")
    _add_timeout(read)
    _add_record(read)
    _add_reach(read)

    prompt = _add(commands, "prompt", "Get a prompt of a server, or list its prompts.")
    prompt.add_argument("server", metavar="SERVER", help="its name")
    prompt.add_argument("name", nargs="?", metavar="NAME", help="which one (default: list them)")
    prompt.add_argument("arguments", nargs="*", metavar="KEY=VALUE", help="an argument of the prompt")
    _add_timeout(prompt)
    _add_record(prompt)
    _add_reach(prompt)

    search = _add(commands, "search", "Search servers' tools by a description in your own words.")
    search.add_argument("words", nargs="+", metavar="WORD", help="a description, or /regex/ to match names")
    search.add_argument("--type", choices=SEARCH_TYPES, default="tools", help="the type of result (default: tools)")
    search.add_argument("--server", metavar="SERVER", help="only of this one")
    search.add_argument("--tag", metavar="TAG", help="only of servers with this tag")
    search.add_argument(
        "--limit", type=_result_count, default=10, metavar="N", help="maximum number of results (default: 10)"
    )
    _add_reach(search)


def add_watch_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `replay`, `logs`, and `top`."""
    replay = _add(
        commands,
        "replay",
        "Serve a recording of a server as if it were the server, on standard input and output or over HTTP.",
        "Recorded requests get their recorded answers, in order. To record, pass --record to call, tools, read, or "
        "prompt, set record in the configuration, or use the console.",
    )
    replay.add_argument("file", type=Path, metavar="FILE", help="the recording")
    replay.add_argument(
        "--speed",
        choices=SPEEDS,
        default=INSTANT,
        help="instant: without delays (default); recorded: with the recorded delays",
    )
    what = replay.add_mutually_exclusive_group()
    what.add_argument(
        "--listen",
        type=_address,
        metavar="[HOST:]PORT",
        help=f"serve over Streamable HTTP at /mcp, and print the URL; 0 selects a free port (default host: {LOOPBACK})",
    )
    what.add_argument("--list", action="store_true", help="show the recorded requests without serving them")
    replay.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="also accept this Host header"
    )
    replay.add_argument("--allow-origin", action="append", default=[], metavar="URL", help="let pages of it call")
    replay.add_argument(
        "--insecure", action="store_true", help="allow connections from other machines without authentication"
    )
    replay.add_argument("--json", action="store_true", help="say it in JSON")
    replay.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="not needed here")
    logs = _add(commands, "logs", "Show what servers logged in a running emceepee serve.")
    logs.add_argument("server", nargs="?", metavar="SERVER", help="only this server (default: all)")
    logs.add_argument("-f", "--follow", action="store_true", help="follow new lines until Ctrl-C")
    logs.add_argument(
        "-n",
        "--lines",
        type=_line_count,
        default=100,
        metavar="N",
        help="how many earlier lines to show (default: 100)",
    )
    logs.add_argument("--level", choices=LEVELS, default="debug", help="the lowest log level to show (default: all)")
    _add_place(logs)
    top = _add(commands, "top", "Watch a running emceepee serve: its servers, calls, tasks, and questions.")
    top.add_argument("--once", action="store_true", help="print the state once and exit (default without a terminal)")
    _add_place(top)


def add_own_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `version` and `completion`."""
    version = _add(commands, "version", "Show the versions of emceepee and its environment.")
    version.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="the configuration file to report")
    version.add_argument("--json", action="store_true", help="say it in JSON")
    completion = _add(
        commands,
        "completion",
        "Print a script that completes emceepee's commands and flags in a shell.",
        "For bash: source <(emceepee completion bash). For zsh and fish, save it to a file that the shell loads.",
    )
    completion.add_argument("shell", choices=SHELLS, metavar="SHELL", help=f"one of {', '.join(SHELLS)}")


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, words: str, more: str = ""
) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=words, description=f"{words} {more}".rstrip(), epilog=EXIT_CODES)


def _add_reach(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="whose servers are started here")
    parser.add_argument(
        "--state",
        metavar="WHERE",
        default=argparse.SUPPRESS,
        help=f"where logins to servers are stored, as for serve; or set {STATE_VARIABLE} (default: nowhere)",
    )
    parser.add_argument(
        "--url", metavar="URL", help="use the running emceepee serve at this URL instead of starting servers"
    )
    _add_rest(parser)


def _add_place(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--url",
        metavar="URL",
        default=USUAL_URL,
        help=f"its URL, or the link to its console (default: {USUAL_URL})",
    )
    parser.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="not needed here")
    _add_rest(parser)


def _add_rest(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--token", metavar="TOKEN", help=f"for --url; or set {TOKEN_VARIABLE}")
    parser.add_argument(
        "--ca-bundle", type=Path, metavar="FILE", default=argparse.SUPPRESS, help="trust these CAs, too"
    )
    parser.add_argument("--json", action="store_true", help="say it in JSON")


def _add_record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="append the messages between emceepee and the server to this file, for emceepee replay",
    )


def _add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=seconds,
        default=CALL_SECONDS,
        metavar="SECONDS",
        help=f"timeout in seconds (default: {CALL_SECONDS:g})",
    )


def _address(text: str) -> tuple[str, int]:
    from urllib.parse import urlsplit

    place = f"{LOOPBACK}:{text}" if text.isdecimal() else text
    try:
        parts = urlsplit(f"//{place}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or port is None or parts.netloc != place or "@" in place:
        raise argparse.ArgumentTypeError(f"expected [HOST:]PORT, such as {LOOPBACK}:8080, found {text!r}")
    return host, port


def _line_count(text: str) -> int:
    if not text.isdecimal() or int(text) > 1_000_000:
        raise argparse.ArgumentTypeError(f"expected a number of lines, found {text!r}")
    return int(text)


def _result_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_RESULTS:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {MOST_RESULTS}, found {text!r}")
    return int(text)
