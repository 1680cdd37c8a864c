"""A server on standard input and output, of the era in its first argument. The standard library only: start it with -S.

Its tools: `echo` repeats its arguments, `refuse` returns an error, `hang` never answers, `ask` asks a question first,
`tell` logs its arguments and answers, `exit` ends the process. With `deaf` as second argument it reads no further than
the first call, so that what follows fills its pipe.
"""

import json
import os
import signal
import sys
from typing import Any

MODERN = "2026-07-28"
TOOLS = ("echo", "refuse", "hang", "ask", "tell", "exit")
INFO = {"name": "either-era", "version": "1"}
CAPABILITIES: dict[str, Any] = {"tools": {}, "logging": {}}
QUESTION = {
    "method": "elicitation/create",
    "params": {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}},
}
waiting: dict[str, Any] = {}  # the calls that our questions belong to


def put(message: dict[str, Any]) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def said(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}]}


def answer(era: str, key: Any, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The answer, or None if there is none yet."""
    match method:
        case "server/discover" if era == MODERN:
            return {"result": {"supportedVersions": [MODERN], "capabilities": CAPABILITIES, "serverInfo": INFO}}
        case "initialize" if era != MODERN:
            return {"result": {"protocolVersion": era, "capabilities": CAPABILITIES, "serverInfo": INFO}}
        case "tools/list":
            return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}}
        case "ping" | "logging/setLevel":
            return {"result": {}}
        case "tools/call":
            return called(era, key, params)
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def called(era: str, key: Any, params: dict[str, Any]) -> dict[str, Any] | None:
    given = params.get("arguments") or {}
    match params["name"]:
        case "hang":
            return None
        case "refuse":
            return {"error": {"code": -32000, "message": "no", "data": given}}
        case "exit":
            sys.exit(3)
        case "tell":
            put({"method": "notifications/message", "params": {"level": "info", "data": given}})
        case "ask" if era == MODERN and "inputResponses" not in params:
            return {"result": {"resultType": "input_required", "inputRequests": {"sure": QUESTION}}}
        case "ask" if era != MODERN:
            waiting[f"question {key}"] = key
            put({"id": f"question {key}", **QUESTION})
            return None
    return {"result": said(given)}


def hear(era: str, message: dict[str, Any]) -> None:
    key, method = message.get("id"), message.get("method")
    if method is None and key in waiting:
        put({"id": waiting.pop(key), "result": said(message.get("result", message.get("error")))})
    elif key is not None and method is not None:
        reply = answer(era, key, method, message.get("params") or {})
        if reply is not None:
            put({"id": key, **reply})


def main(era: str, *words: str) -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        hear(era, message)
        if "deaf" in words and message.get("method") == "tools/call":
            signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
