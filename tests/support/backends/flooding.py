"""A server on standard input and output that says far too much when asked to. The standard library only: start with -S.

A call of the tool `flood` with {"what": …, "seconds": …} or {"what": …, "count": …} floods; `echo` tells that it lives.
"""

import json
import os
import select
import sys
from collections.abc import Iterator
from time import monotonic
from typing import Any

BATCH = 500  # messages in one write
PAUSE = 0.05


def ping(number: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": f"p{number}", "method": "ping"}


def question(number: int) -> dict[str, Any]:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    params = {"message": f"Question {number}?", "requestedSchema": form}
    return {"jsonrpc": "2.0", "id": f"q{number}", "method": "elicitation/create", "params": params}


def notification(number: int) -> dict[str, Any]:
    params = {"number": number, "filler": "n" * SIZE}
    return {"jsonrpc": "2.0", "method": "notifications/custom", "params": params}


def log_line(number: int) -> dict[str, Any]:
    params = {"level": "info", "data": f"{number} " + "l" * SIZE}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


KINDS = {"ping": ping, "question": question, "notification": notification, "log": log_line}
SIZE = int(os.environ.get("FLOOD_BYTES", "10"))


def batches(what: str, count: int, size: int) -> Iterator[bytes]:
    for first in range(0, count, size):
        numbers = range(first, min(first + size, count))
        yield b"".join(json.dumps(KINDS[what](number)).encode() + b"\n" for number in numbers)


def flood(what: str, seconds: float | None, count: int) -> int:
    """How many messages went out before the time was over, or the reader stopped reading."""
    os.set_blocking(1, False)
    until, sent = monotonic() + (60 if seconds is None else seconds), 0
    size = max(min(BATCH, 1_000_000 // (SIZE + 100)), 1)
    for batch in batches(what, 10**9 if seconds is not None else count, size):
        view = memoryview(batch)
        while view:
            if monotonic() > until:
                break
            if select.select([], [1], [], PAUSE)[1]:
                view = view[os.write(1, view) :]
        sent += batch.count(b"\n") - bytes(view).count(b"\n")
        if view:
            if len(view) < len(batch):  # the rest of a line that was begun
                os.set_blocking(1, True)
                line, _, _ = bytes(view).partition(b"\n")
                os.write(1, line + b"\n")
            break
    os.set_blocking(1, True)
    return sent


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "initialize":
            info = {"name": "flooding", "version": "1"}
            return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("flood", "echo")]}
        case "tools/call":
            given = params.get("arguments") or {}
            if params["name"] == "flood":
                sent = flood(given["what"], given.get("seconds"), given.get("count", 0))
                return {"content": [{"type": "text", "text": str(sent)}]}
            return {"content": [{"type": "text", "text": "here"}]}
    return {}


def main() -> None:
    refused = 0
    for line in sys.stdin.buffer:
        message = json.loads(line)
        key, method = message.get("id"), message.get("method")
        if method is None:
            refused += "error" in message
        elif key is not None and method == "server/discover":
            error = {"code": -32601, "message": "Method not found"}
            os.write(1, json.dumps({"jsonrpc": "2.0", "id": key, "error": error}).encode() + b"\n")
        elif key is not None:
            result = answer(method, message.get("params") or {})
            if method == "tools/call" and message["params"]["name"] == "echo":
                result = {"content": [{"type": "text", "text": f"{refused} refused"}]}
            os.write(1, json.dumps({"jsonrpc": "2.0", "id": key, "result": result}).encode() + b"\n")


if __name__ == "__main__":
    main()
