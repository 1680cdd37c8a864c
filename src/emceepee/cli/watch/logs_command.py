"""`emceepee logs`: show servers' log messages that a running `emceepee serve` stores."""

import argparse
import json
import sys

from emceepee.cli.client_changes import run_guarded
from emceepee.cli.command_arguments import LEVELS
from emceepee.cli.terminal import DONE, FAILED, Paint, complain, rendered
from emceepee.cli.watch.console_feed import FeedLost, read_feed
from emceepee.terminal_text import printable_json
from emceepee.wire.json_types import JsonObject


def run_logs(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_guarded(lambda: _run(options), interrupted=DONE if options.follow else None)


def _run(options: argparse.Namespace) -> int:
    paint, shown, servers, is_begun = Paint.of(sys.stdout), [], set(), False
    try:
        for frame in read_feed(options.url, options.token, options.ca_bundle):
            if frame.name == "logs":
                found = [line for line in frame.data.get("logs") or () if _is_wanted(line, options)]
                if is_begun:
                    _show(found, options, paint)
                else:
                    shown += found
            elif frame.name == "session":
                servers |= {str(server.get("name")) for server in frame.data.get("servers") or ()}
            elif frame.name == "ready" and not is_begun:
                is_begun = True
                shown.sort(key=lambda line: str(line.get("timestamp")))
                _show(shown[-options.lines :] if options.lines else [], options, paint)
                if options.server is not None and options.server not in servers:
                    there = ", ".join(sorted(servers)) or "none, as nobody calls"
                    complain(f'no session has a server "{options.server}" now; there are {there}')
                if not options.follow:
                    return DONE
    except FeedLost as error:
        complain(error)
        return FAILED
    complain("emceepee closed the connection; run the command again to continue")
    return FAILED


def _is_wanted(line: JsonObject, options: argparse.Namespace) -> bool:
    if options.server is not None and line.get("server") != options.server:
        return False
    level = line.get("level")
    return level not in LEVELS or LEVELS.index(level) >= LEVELS.index(options.level)


def _show(lines: list[JsonObject], options: argparse.Namespace, paint: Paint) -> None:
    for line in lines:
        sys.stdout.write(f"{printable_json(line) if options.json else _text(line, paint)}\n")
    sys.stdout.flush()


def _text(line: JsonObject, paint: Paint) -> str:
    data, level = line.get("data"), str(line.get("level"))
    words = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    is_bad = level in LEVELS[LEVELS.index("warning") :]
    source = "" if line.get("source") == "protocol" else f" {line.get('source')}"
    head = f"{str(line.get('timestamp'))[11:23]} {line.get('server')}{source}"
    return rendered(paint.faint(head), " ", paint.bad(level) if is_bad else level, " ", words)
