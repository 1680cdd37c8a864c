"""JSON to and from the wire: fast for what is well-formed, lenient for what real servers send."""

import json
import re
from typing import Any

import msgspec
from orjson import dumps as _quick_encode

_strict_decode = msgspec.json.Decoder().decode
_strict_encode = msgspec.json.Encoder().encode
SHORT = 4096  # bytes: orjson takes a kilobyte for anything, so what is short and may be kept moves to where it fits
_SURROGATE = re.compile("[\ud800-\udfff]")


def decode(data: bytes | bytearray) -> Any:
    """Parse JSON. Lone surrogates, NaN and bad bytes are made clean instead of refused.

    Raises:
        ValueError: it is no JSON, or is nested too deeply to be held.
    """
    try:
        return _strict_decode(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        return _lenient_decode(data)


def encode(value: Any) -> bytes:
    """Write compact JSON. A lone surrogate leaves as the replacement character: strict readers die on it."""
    try:
        data = _quick_encode(value)
    except TypeError:  # an integer beyond 64 bits, deep nesting, a lone surrogate
        return _thorough_encode(value)
    return bytes(memoryview(data)) if len(data) < SHORT else data


def encode_text(value: Any) -> str:
    """Compact JSON as text, for a content block."""
    return encode(value).decode()


def _thorough_encode(value: Any) -> bytes:
    try:
        return _strict_encode(value)
    except UnicodeEncodeError:
        return _strict_encode(_lenient_decode(json.dumps(value).encode()))


def _lenient_decode(data: bytes | bytearray) -> Any:
    try:
        parsed = json.loads(data.decode("utf-8", "replace"))
        clean = _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", json.dumps(parsed, ensure_ascii=False))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    # The strict half of JSON has no NaN and no Infinity: they become null, as JavaScript writes them.
    return json.loads(clean, parse_constant=lambda _: None)
