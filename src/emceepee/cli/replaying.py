"""`emceepee replay`: a recording as a server."""

import argparse
import asyncio
import os
import sys

from emceepee.cli.client_changes import say_json
from emceepee.cli.command_arguments import INSTANT
from emceepee.cli.process_setup import STDIN, STDOUT
from emceepee.cli.terminal import DONE, USAGE, complain, printable, say
from emceepee.clock import SystemClock
from emceepee.json_types import JsonObject
from emceepee.replay.reading import BadRecording, read_recording
from emceepee.replay.recording import Exchange, Questions, Recording
from emceepee.replay.script import shown
from emceepee.telemetry import logs


def run_replay(options: argparse.Namespace, closed: frozenset[int]) -> int:
    """Returns the exit code."""
    try:
        recording = read_recording(options.file)
    except BadRecording as error:
        complain(printable(str(error)))
        return USAGE
    if options.list:
        _list(recording, as_json=options.json)
        return DONE
    if closed & {STDIN, STDOUT}:
        complain("standard input or output is closed, so there is nobody to serve")
        return USAGE
    logs.configure(level="error")
    for note in recording.notes:
        complain(printable(note))
    if os.isatty(STDIN):
        complain(f"replays {printable(recording.server)}; a client is to start this, or type JSON-RPC")
    from emceepee.replay.stdio import replay_on_stdio

    serving = replay_on_stdio(
        recording,
        SystemClock(),
        stdin=STDIN,
        stdout=STDOUT,
        is_instant=options.speed == INSTANT,
        says=lambda words: complain(printable(words)),
    )
    asyncio.run(serving)
    return DONE


def _list(recording: Recording, *, as_json: bool) -> None:
    if as_json:
        rows = [_row(exchange) for exchange in recording.exchanges]
        say_json({"server": recording.server, "requests": rows, "notes": recording.notes})
        return
    say(printable(f"{recording.server}: {len(recording.exchanges)} requests"))
    for exchange in recording.exchanges:
        row = _row(exchange)
        told = "".join(f", {row[key]} {key}" for key in ("notifications", "questions") if row[key])
        say(printable(f"  line {row['line']}: {shown(exchange.method, exchange.params)} → {row['outcome']}{told}"))
    sys.stdout.flush()
    for note in recording.notes:
        complain(printable(note))


def _row(exchange: Exchange) -> JsonObject:
    questions = sum(len(step.asked) for step in exchange.steps if isinstance(step, Questions))
    return {
        "line": exchange.line,
        "method": exchange.method,
        "params": exchange.params,
        "outcome": "error" if exchange.result is None else "result",
        "notifications": sum(not isinstance(step, Questions) for step in exchange.steps),
        "questions": questions,
    }
