"""A server on standard input and output that says far too much when asked to. The standard library only: start with -S.

A call of the tool `flood` with {"what": …, "seconds": …} or {"what": …, "count": …} floods. It reads nothing during
the flood unless it has {"reads": true}. `echo` returns how many of its requests were refused.
"""

import json
import os
import select
from collections.abc import Iterator
from time import monotonic
from typing import Any

BATCH = 500  # messages in one write
PAUSE = 0.05
LONGEST = 60.0  # seconds
SIZE = int(os.environ.get("FLOOD_BYTES", "10"))


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


class Server:
    def __init__(self) -> None:
        self.unread = b""
        self.refused = 0

    def run(self) -> None:
        while data := os.read(0, 1 << 16):
            for line in self.lines(data):
                self.hear(json.loads(line))

    def lines(self, data: bytes) -> list[bytes]:
        *lines, self.unread = (self.unread + data).split(b"\n")
        return lines

    def hear(self, message: dict[str, Any]) -> None:
        key, method = message.get("id"), message.get("method")
        if method is None:
            self.refused += "error" in message
        elif key is not None and method == "server/discover":
            send({"jsonrpc": "2.0", "id": key, "error": {"code": -32601, "message": "Method not found"}})
        elif key is not None:
            send({"jsonrpc": "2.0", "id": key, "result": self.answer(method, message.get("params") or {})})

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        match method:
            case "initialize":
                info = {"name": "flooding", "version": "1"}
                return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("flood", "echo")]}
            case "tools/call":
                told = f"{self.refused} refused"
                if params["name"] == "flood":
                    told = f"{self.flood(**params['arguments'])} sent"
                return {"content": [{"type": "text", "text": told}]}
        return {}

    def flood(self, what: str, seconds: float | None = None, count: int = 10**9, reads: bool = False) -> int:
        """How many messages went out before the time was over."""
        os.set_blocking(1, False)
        until, sent = monotonic() + (LONGEST if seconds is None else seconds), 0
        for batch in batches(what, count):
            view = memoryview(batch)
            while view and monotonic() < until:
                readable, writable, _ = select.select([0] if reads else [], [1], [], PAUSE)
                if readable:
                    for line in self.lines(os.read(0, 1 << 16)):
                        self.hear(json.loads(line))
                if writable:
                    view = view[os.write(1, view) :]
            sent += batch.count(b"\n") - bytes(view).count(b"\n")
            if view:
                os.set_blocking(1, True)
                if len(view) < len(batch):  # a line was begun
                    line, _, _ = bytes(view).partition(b"\n")
                    os.write(1, line + b"\n")
                break
        os.set_blocking(1, True)
        return sent


def batches(what: str, count: int) -> Iterator[bytes]:
    size = max(min(BATCH, 1_000_000 // (SIZE + 100)), 1)
    for first in range(0, count, size):
        numbers = range(first, min(first + size, count))
        yield b"".join(json.dumps(KINDS[what](number)).encode() + b"\n" for number in numbers)


def send(message: dict[str, Any]) -> None:
    os.write(1, json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    Server().run()
