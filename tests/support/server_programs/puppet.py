"""A server on standard input and output whose every word is its caller's. The standard library only: start it with -S.

The first argument is a JSON file: what `initialize` and the lists answer. Any tool does what its arguments say, in this
order, and else repeats them: `stderr` (a line), `send` (notifications; "TOKEN" stands for the call's progress token),
`release` (the name of a call that is held, which ends now), `hold` (a name: it lasts until it is released), `ask` (a
request; its answer is the result), `error` or `result`. `--starts FILE` gets a line for each process.
"""

import json
import os
import sys
from typing import Any

asked: dict[str, Any] = {}  # the calls that our questions belong to
held: dict[str, Any] = {}  # calls by the names under which they are released


def put(message: dict[str, Any]) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def said(value: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": {"value": value}}


def called(key: Any, params: dict[str, Any]) -> dict[str, Any] | None:
    """The answer, or None if it must wait for one."""
    wish = params.get("arguments") or {}
    if "stderr" in wish:
        sys.stderr.write(wish["stderr"] + "\n")
        sys.stderr.flush()
    token = (params.get("_meta") or {}).get("progressToken")
    for message in wish.get("send", ()):
        told = {name: token if item == "TOKEN" else item for name, item in message["params"].items()}
        put({"method": message["method"], "params": told})
    if "release" in wish:
        put({"id": held.pop(wish["release"]), "result": said("released")})
    if "hold" in wish:
        held[wish["hold"]] = key
        return None
    if "ask" in wish:
        asked[f"question {key}"] = key
        put({"id": f"question {key}", **wish["ask"]})
        return None
    if "error" in wish:
        return {"error": wish["error"]}
    return {"result": wish.get("result", said(wish))}


def answer(key: Any, method: str, params: dict[str, Any], offer: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        hello = {"serverInfo": {"name": "puppet", "version": "1"}, **offer.get("initialize", {})}
        everything: dict[str, Any] = {"tools": {}, "resources": {}, "prompts": {}, "logging": {}}
        return {"result": {"protocolVersion": params["protocolVersion"], "capabilities": everything, **hello}}
    if method == "tools/call":
        return called(key, params)
    if method == "ping" or method == "logging/setLevel":
        return {"result": {}}
    if method in offer:
        return {"result": offer[method]}
    return {"error": {"code": -32601, "message": f"Method not found: {method}"}}


def hear(message: dict[str, Any], offer: dict[str, Any]) -> None:
    key, method = message.get("id"), message.get("method")
    if method is None and key in asked:
        put({"id": asked.pop(key), "result": said(message.get("result", message.get("error")))})
    elif key is not None and method is not None:
        reply = answer(key, method, message.get("params") or {}, offer)
        if reply is not None:
            put({"id": key, **reply})


def main(offer_file: str, *words: str) -> None:
    with open(offer_file, encoding="utf-8") as file:
        offer = json.load(file)
    if "--starts" in words:
        with open(words[words.index("--starts") + 1], "a", encoding="utf-8") as starts:
            starts.write(f"{os.getpid()}\n")
    for line in sys.stdin.buffer:
        hear(json.loads(line), offer)


if __name__ == "__main__":
    main(*sys.argv[1:])
