"""A small MCP server on standard input and output, as good or as bad as the words on its command line say.

marker=FILE   write the process id to FILE at start
forks=FILE    leave a grandchild in the process group, its id in FILE
stubborn      that grandchild ignores SIGTERM
deaf          ignore the end of input and SIGTERM
exits=CODE    complain on stderr and exit at start
silent        read everything, answer nothing
noisy         write rubbish to stdout at start and before every answer
old           exit when asked server/discover, as servers on the Python SDK before 1.9 do: when something more comes
older         the same, but at once
seen=FILE     add a line to FILE for each method asked
"""

import json
import os
import signal
import sys
from typing import Any

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
RUBBISH = b"starting up...\n{not json}\n\xff\xfe bytes that are no UTF-8\n42\n\n"
FLOOD_BYTES = 2 << 20
LONGEST_LIFE = 300  # seconds: where emceepee fails to end it, a server ends itself after the tests
TOOLS = ("echo", "kinds", "surrogate", "flood", "exit")
KINDS: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "häppy ✓ 🎉", "annotations": {"audience": ["user"], "priority": 0.5}},
        {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "_meta": {"own": 1}},
        {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "test://text", "mimeType": "text/plain", "text": "embedded"}},
        {"type": "resource", "resource": {"uri": "test://blob", "blob": "AAEC", "_meta": {"deep": {"er": None}}}},
        {"type": "resource_link", "uri": "test://link", "name": "link", "size": 9007199254740993, "icons": []},
        {"type": "hologram", "voxels": [1, 2.5, 1e300], "unknown": True},
    ],
    "structuredContent": {"empty": {}, "list": [], "null": None, "number": -0.125, "": "no name"},
    "_meta": {"example.org/trace": "abc"},
    "notInAnySpecification": {"kept": True},
}


def note(file: str | None, message: dict[str, Any]) -> None:
    if file is not None:
        with open(file, "a") as seen:
            seen.write(f"{message.get('method')}\n")


def main(words: list[str]) -> None:
    options = dict(word.partition("=")[::2] for word in words)
    signal.alarm(LONGEST_LIFE)
    if "marker" in options:
        write_pid(options["marker"])
    if "forks" in options:
        leave_a_grandchild(options["forks"], stubborn="stubborn" in options)
    if "exits" in options:
        sys.stderr.write("cannot find the configuration\nset THE_TOKEN and try again\n")
        sys.exit(int(options["exits"]))
    if "deaf" in options:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "noisy" in options:
        put(RUBBISH)
    for line in sys.stdin.buffer:
        if "silent" in options:
            continue
        message = json.loads(line)
        note(options.get("seen"), message)
        if message.get("method") == "server/discover" and ("old" in options or "older" in options):
            if "old" in options:
                sys.stdin.buffer.readline()
            sys.exit("Input should be 'tools/call'")
        if "id" in message and "method" in message:
            if "noisy" in options:
                put(b"about to answer\n")
            put(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}).encode() + b"\n")
            if "plugged" in options and message["method"] == "tools/list":
                break
    while "deaf" in options or "plugged" in options:
        signal.pause()


def answer(message: dict[str, Any]) -> dict[str, Any]:
    params = message.get("params", {})
    match message["method"]:
        case "initialize":
            asked = params["protocolVersion"]
            return {
                "result": {
                    "protocolVersion": asked if asked in VERSIONS else VERSIONS[-1],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "stdio_server", "version": "1"},
                }
            }
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}}
        case "tools/call":
            return called(params["name"], params.get("arguments", {}))
    return {"error": {"code": -32601, "message": f"Method not found: {message['method']}"}}


def called(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match tool:
        case "echo":
            return {"result": text(arguments["text"])}
        case "kinds":
            return {"result": KINDS}
        case "surrogate":
            return {"result": text("before \ud800 after")}  # json.dumps writes the half of a pair as an escape
        case "flood":
            lines, one_line = b"drip\n" * (FLOOD_BYTES // 10), b"x" * (FLOOD_BYTES // 2) + b"\n"
            sys.stderr.buffer.write(lines + one_line)
            sys.stderr.buffer.flush()
            return {"result": text("flooded")}
        case "exit":
            sys.stderr.write("told to go\n")
            sys.exit(arguments["code"])
    return {"error": {"code": -32602, "message": f"Unknown tool: {tool}"}}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def put(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def write_pid(path: str) -> None:
    """Write the process id atomically: a reader never sees an empty file."""
    with open(f"{path}.part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{path}.part", path)


def leave_a_grandchild(path: str, *, stubborn: bool) -> None:
    if os.fork() == 0:
        signal.alarm(LONGEST_LIFE)
        if stubborn:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        write_pid(path)
        while True:
            signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
