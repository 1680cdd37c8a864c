"""The answers of the backend, as bytes. Nothing beyond the standard library, so that a process of it starts quickly."""

import json

from bench.work import SIZES, Era, Json, text_of

SERVER = {"name": "bench-backend", "version": "1"}
CAPABILITIES: Json = {"tools": {}, "resources": {"subscribe": True}}
NO_SUCH_METHOD = b'"error":{"code":-32601,"message":"Method not found"}}'


def _encoded(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _tools() -> list[Json]:
    schema = {"type": "object", "properties": {"note": {"type": "string", "description": "Any words"}}}
    return [
        {"name": size.tool, "description": f"Returns a text of {size.title}.", "inputSchema": schema} for size in SIZES
    ]


class Answers:
    """The text after the id in the answer to each request: `"result":{…}}`."""

    def __init__(self, era: Era) -> None:
        self._era = era
        cached = {"ttlMs": 0, "cacheScope": "private"} if era is Era.MODERN else {}
        self._calls = {
            size.tool: self._result({"content": [{"type": "text", "text": text_of(size)}], "isError": False})
            for size in SIZES
        }
        self._others = {
            "ping": self._result({}),
            "tools/list": self._result({"tools": _tools(), **cached}),
            "resources/list": self._result({"resources": [], **cached}),
            "resources/subscribe": self._result({}),
        }
        if era is Era.MODERN:
            discovered = {"supportedVersions": [era], "capabilities": CAPABILITIES, "serverInfo": SERVER, **cached}
            self._others["server/discover"] = self._result(discovered)
        else:
            greeting = {"protocolVersion": era, "capabilities": CAPABILITIES, "serverInfo": SERVER}
            self._others["initialize"] = self._result(greeting)

    def _result(self, value: Json) -> bytes:
        if self._era is Era.MODERN:
            value = {"resultType": "complete", **value}
        return b'"result":' + _encoded(value) + b"}"

    def tail(self, method: str, params: Json) -> bytes:
        if method == "tools/call":
            return self._calls.get(params.get("name", ""), NO_SUCH_METHOD)
        return self._others.get(method, NO_SUCH_METHOD)


def head(number: object) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + json.dumps(number).encode() + b","
