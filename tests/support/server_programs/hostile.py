"""A server on standard input and output that misbehaves on request. The standard library only: start it with -S.

Flags: --crash-at-start, --crash-after-start, --ignore-end (of input, and SIGTERM), --fork and --fork-away (a child at
start, in a session of its own with the latter), --log FILE (a line for each call that ran).
"""

import json
import os
import signal
import sys
from typing import Any

TOOLS = ("echo", "pid", "die", "hang", "late", "stderr", "garbage", "half", "fork", "ask", "deaf", "orphan", "daemon")
LONGEST_LIFE = 300  # seconds: where emceepee fails to end it, a daemon ends itself after the tests
waiting: dict[str, Any] = {}  # what hangs, by the id of its request
asked: dict[str, Any] = {}  # whom our questions belong to


def send(message: dict[str, Any]) -> None:
    write(json.dumps(message).encode() + b"\n")


def write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def text(words: object) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": str(words)}]}


def fork(*, away: bool = False, stubborn: bool = False) -> int:
    """Start a child that does nothing forever and holds our pipes open."""
    pid = os.fork()
    if pid == 0:
        if away:
            os.setsid()
        signal.signal(signal.SIGTERM, signal.SIG_IGN if stubborn else signal.SIG_DFL)
        while True:
            signal.pause()
    return pid


def daemon() -> int:
    """A process that is nobody's: of a session of its own, without a parent, a pipe of ours or an environment."""
    told, tell = os.pipe()
    if (parent := os.fork()) == 0:
        os.setsid()
        if (pid := os.fork()) == 0:
            for descriptor in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), descriptor)
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            os.execve("/bin/sleep", ["sleep", str(LONGEST_LIFE)], {})
        os.write(tell, str(pid).encode())
        os._exit(0)
    os.waitpid(parent, 0)
    return int(os.read(told, 100))


def flood(size: int) -> None:
    line = b"e" * 99 + b"\n"
    for _ in range(size // 100):
        os.write(2, line)


def call(key: Any, name: str, given: dict[str, Any]) -> dict[str, Any] | None:
    match name:
        case "echo":
            return text(given.get("text", ""))
        case "pid":
            return text(os.getpid())
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang" | "late":
            waiting[str(key)] = name
            return None
        case "stderr":
            flood(given["bytes"])
        case "garbage":
            for noise in (
                b"hello\n",
                b"\xff\xfe\x80\n",
                b'{"half":\n',
                b"42\n",
                b"null\n",
                b"\n",
                b"[]\n",
                b"x" * 70_000,
            ):
                write(noise)
            write(b"\n")
        case "orphan":
            pid = os.fork()
            if pid == 0:
                if os.fork() == 0:
                    os.close(0)
                os._exit(0)  # both; the second may well outlive the first, and is nobody's child then
            os.waitpid(pid, 0)
        case "daemon":
            return text(daemon())
        case "deaf":
            while True:
                signal.pause()
        case "half":
            write(b'{"jsonrpc":"2.0","id":')
            os._exit(5)
        case "fork":
            return text(fork(away=given.get("away", False), stubborn=given.get("stubborn", False)))
        case "ask":
            send({"jsonrpc": "2.0", "id": f"q{key}", "method": "elicitation/create", "params": question()})
            asked[f"q{key}"] = key
            return None
    return text("done")


def question() -> dict[str, Any]:
    return {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}}}


def answer(key: Any, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            version = params["protocolVersion"]
            capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}
            return {
                "protocolVersion": version,
                "capabilities": capabilities,
                "serverInfo": {"name": "hostile", "version": "1"},
            }
        case "tools/list":
            return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
        case "tools/call":
            log(params)
            return call(key, params["name"], params.get("arguments") or {})
    return {}


def log(params: dict[str, Any]) -> None:
    if "--log" in sys.argv:
        with open(sys.argv[sys.argv.index("--log") + 1], "a", encoding="utf-8") as file:
            file.write(f"{params['name']} {json.dumps(params.get('arguments'))}\n")


def hear(message: dict[str, Any]) -> None:
    key, method = message.get("id"), message.get("method")
    params = message.get("params") or {}
    if method == "notifications/cancelled":
        gone = params["requestId"]
        if waiting.pop(str(gone), None) == "late":
            send({"jsonrpc": "2.0", "id": gone, "result": text("too late")})
    elif method is None and key in asked:
        send({"jsonrpc": "2.0", "id": asked.pop(key), "result": text(json.dumps(message.get("result")))})
    elif key is not None and method == "server/discover":
        send({"jsonrpc": "2.0", "id": key, "error": {"code": -32601, "message": "Method not found"}})
    elif key is not None and method is not None:
        result = answer(key, method, params)
        if result is not None:
            send({"jsonrpc": "2.0", "id": key, "result": result})
    elif method == "notifications/initialized" and "--crash-after-start" in sys.argv:
        os._exit(4)


def main() -> None:
    if "--crash-at-start" in sys.argv:
        os.write(2, b"no key for the lock\n")
        os._exit(3)
    if "--ignore-end" in sys.argv:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "--fork" in sys.argv:
        fork(stubborn="--ignore-end" in sys.argv)
    if "--fork-away" in sys.argv:
        fork(away=True, stubborn="--ignore-end" in sys.argv)
    for line in sys.stdin.buffer:
        hear(json.loads(line))
    while "--ignore-end" in sys.argv:
        signal.pause()


if __name__ == "__main__":
    main()
