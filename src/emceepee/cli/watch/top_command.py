"""`emceepee top`: a live view of a running `emceepee serve` in the terminal."""

import argparse
import sys
import threading
from typing import TYPE_CHECKING

from emceepee.cli.client_changes import run_guarded, say_json
from emceepee.cli.terminal import DONE, FAILED, complain
from emceepee.cli.watch.console_feed import FeedLost, read_feed
from emceepee.cli.watch.live_state import LiveState
from emceepee.clock import Clock, SystemClock, epoch_milliseconds
from emceepee.terminal_text import printable
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

FRAMES_PER_SECOND = 2
LONGEST_WORDS = 60


def run_top(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_guarded(lambda: _run(options), interrupted=DONE)


def _run(options: argparse.Namespace) -> int:
    clock, state = SystemClock(), LiveState()
    try:
        if options.json or options.once or not sys.stdout.isatty():
            _read_once(options, state, clock)
            _say_once(options, state, clock)
            return DONE
        _follow(options, state, clock)
    except FeedLost as error:
        complain(error)
        return FAILED
    complain("emceepee closed the connection; run the command again to continue")
    return FAILED


def _read_once(options: argparse.Namespace, state: LiveState, clock: Clock) -> None:
    for frame in read_feed(options.url, options.token, options.ca_bundle):
        state.apply(frame, _now_ms(clock))
        if state.is_ready:
            return


def _say_once(options: argparse.Namespace, state: LiveState, clock: Clock) -> None:
    if options.json:
        say_json(state.facts(_now_ms(clock)))
        return
    from rich.console import Console

    Console().print(_view(state, _now_ms(clock), rows=1000))


def _follow(options: argparse.Namespace, state: LiveState, clock: Clock) -> None:
    from rich.console import Console
    from rich.live import Live

    console, lock = Console(), threading.Lock()  # a separate thread draws the screen

    def view() -> "Group":
        with lock:
            return _view(state, _now_ms(clock), rows=console.height)

    with Live(get_renderable=view, console=console, screen=True, refresh_per_second=FRAMES_PER_SECOND):
        for frame in read_feed(options.url, options.token, options.ca_bundle):
            with lock:
                state.apply(frame, _now_ms(clock))


def _now_ms(clock: Clock) -> float:
    return epoch_milliseconds(clock.now())


def _view(state: LiveState, now_ms: float, rows: int) -> "Group":
    from rich.console import Group
    from rich.text import Text

    servers, tasks, questions = state.servers(), state.tasks(), state.questions()
    taken = len(servers) + len(tasks) + len(questions) + 14  # includes headings and blank lines
    head = f"emceepee {state.version}  {len(state.sessions)} sessions  {len(questions)} questions  Ctrl-C to stop"
    parts: list[Text | Table] = [Text(printable(head), style="bold"), _servers(servers)]
    if questions:
        parts.append(_questions(questions))
    if tasks:
        parts.append(_tasks(tasks))
    parts.append(_calls(state, now_ms, max(rows - taken, 3)))
    return Group(*parts)


def _servers(servers: list[JsonObject]) -> "Table":
    table = _table("server", "state", "sessions", ">calls", ">failed", "address")
    for row in sorted(servers, key=lambda row: str(row["name"])):
        last = row["last"]
        state = str(last.get("status"))
        words = f"{row['connected']}/{row['sessions']}"
        problem = f"{last.get('url')} {last.get('lastError') or ''}"
        _add(table, row["name"], state, words, row["calls"], row["failed"], problem, is_bad=state in ("error",))
    return table


def _questions(questions: list[JsonObject]) -> "Table":
    table = _table("question of", "kind", "since", "words")
    for row in questions:
        _add(table, row.get("server"), row.get("kind"), str(row.get("timestamp"))[11:19], row.get("message") or "")
    return table


def _tasks(tasks: list[JsonObject]) -> "Table":
    table = _table("task of", "tool", "since", "progress")
    for row in tasks:
        _add(table, row.get("server"), row.get("toolName"), str(row.get("createdAt"))[11:19], _progress(row))
    return table


def _progress(row: JsonObject) -> str:
    progress = row.get("progress")
    if not isinstance(progress, dict):
        return str(row.get("statusMessage") or "")
    total = f"/{progress['total']}" if "total" in progress else ""
    return f"{progress.get('progress')}{total} {progress.get('message') or ''}"


def _calls(state: LiveState, now_ms: float, most: int) -> "Table":
    table = _table("call", "of", ">ms", "state", "what became of it")
    for row in state.calls(most):
        took = f"{state.milliseconds(row, now_ms):,.0f}"
        words = str(row.get("error") or _progress(row))
        _add(table, row.get("name"), row.get("server") or "", took, row.get("status"), words, is_bad="error" in row)
    return table


def _table(*heads: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), expand=True, header_style="bold")
    for head in heads:
        rest = 1 if head is heads[-1] else None  # the last column takes the remaining width
        table.add_column(
            head.lstrip(">"), justify="right" if head.startswith(">") else "left", no_wrap=True, ratio=rest
        )
    return table


def _add(table: "Table", *cells: object, is_bad: bool = False) -> None:
    """Add a row of plain text: names and messages come from servers, and must not be parsed as markup."""
    from rich.text import Text

    shown = (printable(str(cell)).replace("\n", " ")[:LONGEST_WORDS] for cell in cells)
    table.add_row(*(Text(text) for text in shown), style="red" if is_bad else None)
