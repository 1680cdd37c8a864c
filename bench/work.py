"""The work of the contestants: transports, eras, sizes, and the bytes of the requests."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Json = dict[str, Any]


class Wire(StrEnum):
    """A transport."""

    HTTP = "http"
    STDIO = "stdio"


class Era(StrEnum):
    """A family of protocol versions, named by the newest."""

    HANDSHAKE = "2025-11-25"
    MODERN = "2026-07-28"


@dataclass(frozen=True, slots=True)
class Shape:
    """How the caller reaches the proxy, and the proxy the backend."""

    front: Wire
    back: Wire

    @property
    def key(self) -> str:
        return f"{self.front}-{self.back}"

    @property
    def title(self) -> str:
        words = {Wire.HTTP: "HTTP", Wire.STDIO: "stdio"}
        return f"{words[self.front]} → {words[self.back]}"


SHAPES = (
    Shape(Wire.HTTP, Wire.HTTP),
    Shape(Wire.HTTP, Wire.STDIO),
    Shape(Wire.STDIO, Wire.STDIO),
    Shape(Wire.STDIO, Wire.HTTP),
)


@dataclass(frozen=True, slots=True)
class Size:
    """A tool of the backend, named by how much it returns."""

    tool: str
    title: str
    text_bytes: int


SMALL = Size("small", "100 B", 100)
MEDIUM = Size("medium", "64 KB", 64 << 10)
LARGE = Size("large", "5 MB", 5_000_000)
SIZES = (SMALL, MEDIUM, LARGE)

_CLIENT = {"name": "bench", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": Era.MODERN,
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
HELLO = {"protocolVersion": Era.HANDSHAKE, "capabilities": {}, "clientInfo": _CLIENT}
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def text_of(size: Size) -> str:
    """Prose with line breaks, because escaping is part of the work; its last words prove that it arrived whole."""
    line = "A line of the text that every backend here returns, as long as a line in a letter.\n"
    mark = mark_of(size)
    return (line * (size.text_bytes // len(line) + 1))[: size.text_bytes - len(mark)] + mark


def mark_of(size: Size) -> str:
    return f"end of {size.tool}"


def params_in(era: Era, params: Json) -> Json:
    return {**params, "_meta": META} if era is Era.MODERN else params


def request(number: int, method: str, params: Json, era: Era) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params_in(era, params)}
    return json.dumps(message, separators=(",", ":")).encode()


def numbered_request(method: str, params: Json, era: Era) -> tuple[bytes, bytes]:
    """Return the bytes before and after the number of a request that is sent many times."""
    before, after = request(0, method, params, era).split(b'"id":0', 1)
    return before + b'"id":', after
