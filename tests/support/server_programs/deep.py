"""A server on standard input and output whose JSON is nested DEPTH levels deep.

The standard library only: start it with -S.
"""

import json
import os
import sys
from typing import Any

DEPTH = int(os.environ.get("DEPTH", "0"))
DEEP = "@@"  # stands where the nesting goes: Python's own encoder cannot write it


def send(message: dict[str, Any]) -> None:
    nested = '{"a":' * DEPTH + "1" + "}" * DEPTH
    text = json.dumps({"jsonrpc": "2.0", **message}).replace(f'"{DEEP}"', nested)
    data = text.encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def call(key: Any, name: str) -> None:
    content = [{"type": "text", "text": name}]
    match name:
        case "result":
            send({"id": key, "result": {"content": content, "structuredContent": DEEP}})
        case "result_first":
            send({"result": {"content": content, "structuredContent": DEEP}, "id": key})
        case "error":
            send({"id": key, "error": {"code": -1, "message": "no", "data": DEEP}})
        case "ask":
            params = {"message": "Well?", "requestedSchema": {"type": "object", "properties": {"a": DEEP}}}
            send({"id": "q", "method": "elicitation/create", "params": params})
            send({"method": "notifications/custom", "params": DEEP})
            send({"method": "notifications/message", "params": {"level": "info", "data": DEEP}})
            send({"id": key, "result": {"content": content}})
        case _:
            send({"id": key, "result": {"content": content}})


def main() -> None:
    for line in sys.stdin.buffer:
        message = json.loads(line)
        key, method = message.get("id"), message.get("method")
        if key is None or method is None:
            continue
        match method:
            case "server/discover":
                send({"id": key, "error": {"code": -32601, "message": "Method not found"}})
            case "initialize":
                version, info = message["params"]["protocolVersion"], {"name": "deep", "version": "1"}
                send(
                    {
                        "id": key,
                        "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info},
                    }
                )
            case "tools/list":
                send({"id": key, "result": {"tools": [{"name": "echo", "inputSchema": DEEP}]}})
            case "tools/call":
                call(key, message["params"]["name"])
            case _:
                send({"id": key, "result": {}})


if __name__ == "__main__":
    main()
