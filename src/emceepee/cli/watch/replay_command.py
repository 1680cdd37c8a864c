"""`emceepee replay`: serve a recording as if it were the server."""

import argparse
import asyncio
import os
import sys

from emceepee.cli.client_changes import say_json
from emceepee.cli.command_arguments import INSTANT
from emceepee.cli.serve.process_setup import STDIN, STDOUT
from emceepee.cli.terminal import DONE, USAGE, complain, say
from emceepee.clock import SystemClock
from emceepee.replay.recording import RecordedExchange, RecordedQuestions, Recording
from emceepee.replay.recording_reader import BadRecording, read_recording
from emceepee.replay.replay_script import shown
from emceepee.telemetry import logs
from emceepee.wire.json_types import JsonObject


def run_replay(options: argparse.Namespace, closed: frozenset[int]) -> int:
    """Run the command and return the exit code."""
    try:
        recording = read_recording(options.file)
    except BadRecording as error:
        complain(error)
        return USAGE
    if options.list:
        _list(recording, as_json=options.json)
        return DONE
    if options.listen is None and (problem := _problem(options, closed)):
        complain(problem)
        return USAGE
    logs.configure(level="error")
    for note in recording.notes:
        complain(note)
    return _serve_stdio(recording, options) if options.listen is None else _serve_http(recording, options)


def _problem(options: argparse.Namespace, closed: frozenset[int]) -> str | None:
    """Return why the recording cannot be served on standard input and output, or None."""
    if options.insecure or options.allow_host or options.allow_origin:
        return "--insecure, --allow-host and --allow-origin are for HTTP: also pass --listen PORT"
    if closed & {STDIN, STDOUT}:
        return "standard input or output is closed, so no client can connect"
    return None


def _serve_stdio(recording: Recording, options: argparse.Namespace) -> int:
    if os.isatty(STDIN):
        complain(f"replays {recording.server}; start this command from a client, or type JSON-RPC")
    from emceepee.miniserver.stdio import serve_on_stdio
    from emceepee.replay.replayed_conversation import ReplayedConversation

    conversation = ReplayedConversation(
        recording,
        SystemClock(),
        is_instant=options.speed == INSTANT,
        says=complain,
    )
    asyncio.run(serve_on_stdio(conversation, stdin=STDIN, stdout=STDOUT))
    return DONE


def _serve_http(recording: Recording, options: argparse.Namespace) -> int:
    from emceepee.guard.access_control import LOOPBACK_NAMES, AccessRules
    from emceepee.replay.replay_endpoint import replay_over_http

    host, port = options.listen
    is_loopback = host in LOOPBACK_NAMES
    if not (is_loopback or options.insecure):
        complain(f"--listen: {host} lets other machines read the recording: pass --insecure to allow that")
        return USAGE
    serving = replay_over_http(
        recording,
        SystemClock(),
        host=host,
        port=port,
        rules=AccessRules(
            hosts=frozenset(options.allow_host),
            origins=frozenset(options.allow_origin),
            any_address=not is_loopback,
        ),
        is_instant=options.speed == INSTANT,
        says=complain,
        announce=lambda url: complain(f"replays {recording.server} at {url} (Ctrl-C to stop)"),
    )
    try:
        asyncio.run(serving)
    except OSError as error:
        complain(f"cannot listen on {host}:{port}: {error}")
        return USAGE
    return DONE


def _list(recording: Recording, *, as_json: bool) -> None:
    if as_json:
        rows = [_row(exchange) for exchange in recording.exchanges]
        say_json({"server": recording.server, "requests": rows, "notes": recording.notes})
        return
    say(f"{recording.server}: {len(recording.exchanges)} requests")
    for exchange in recording.exchanges:
        row = _row(exchange)
        told = "".join(f", {row[key]} {key}" for key in ("notifications", "questions") if row[key])
        say(f"  line {row['line']}: {shown(exchange.method, exchange.params)} → {row['outcome']}{told}")
    sys.stdout.flush()
    for note in recording.notes:
        complain(note)


def _row(exchange: RecordedExchange) -> JsonObject:
    questions = sum(len(step.asked) for step in exchange.steps if isinstance(step, RecordedQuestions))
    return {
        "line": exchange.line,
        "method": exchange.method,
        "params": exchange.params,
        "outcome": "error" if exchange.result is None else "result",
        "notifications": sum(not isinstance(step, RecordedQuestions) for step in exchange.steps),
        "questions": questions,
    }
