"""JSON on the wire: fast for well-formed data, lenient with the data of real servers, and bounded."""

import json
import random
import re
import sys
from collections.abc import Iterator
from itertools import accumulate
from math import isfinite
from typing import Any

import msgspec
from orjson import dumps as _quick_encode

DEEPEST = 200  # levels: far below what the encoders can write, and far above any real data
MOST_VALUES = 1_000_000  # in one message: a value of two bytes takes fifty in memory
SHORT = 4096  # bytes: orjson allocates a kilobyte for any value, so short stored data is copied to a smaller block
_TOO_SHORT_TO_BE_DEEP = 2 * DEEPEST  # bytes, since each level takes two
_TOO_SHORT_FOR_OBJECTS = 5 * DEEPEST  # bytes, since each level that is an object takes five
_TOO_SHORT_TO_BE_MANY = 2 * MOST_VALUES
_QUICKLY_COUNTED = 1 << 16  # bytes
_QUICKLY_READ = 4 << 20  # bytes
_WINDOW = 1 << 18  # bytes
_SAMPLES, _SAMPLE_BYTES = 32, 1024
_strict_decode = msgspec.json.Decoder().decode
_strict_encode = msgspec.json.Encoder().encode
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_NO_VALUES = bytes(byte for byte in range(256) if byte not in b'[{,"')
_ALIKE = bytes.maketrans(b"{}", b"[]")
_STEP = [1 if byte == b"["[0] else -1 for byte in range(256)]
_STRING = re.compile(rb'"[^"]*"')
_HEX = rb"[0-9a-fA-F]"
_HIGH, _LOW = rb"\\u[dD][89abAB]" + _HEX + _HEX, rb"\\u[dD][c-fC-F]" + _HEX + _HEX
_LONE_HIGH = re.compile(_HIGH + rb"(?!" + _LOW + rb")")
_LONE_LOW = re.compile(_LOW + rb"(?<!" + _HIGH + _LOW + rb")")  # lookbehind last, so that a search can skip ahead
_REPLACEMENT = rb"\\ufffd"


class Unreadable(ValueError):
    """The text is valid JSON but exceeds a limit."""


TOO_DEEP = f"nested deeper than {DEEPEST} levels"
TOO_MANY = f"made of more than {MOST_VALUES} values"
TOO_MANY_DIGITS = f"JSON with a number of more than {sys.get_int_max_str_digits()} digits"


def decode(data: bytes | bytearray) -> Any:
    """Parse JSON. Lone surrogates, NaN, and invalid bytes are replaced instead of rejected.

    Raises:
        Unreadable: the text is nested too deeply, or has too many values.
        ValueError: the text is not JSON.
    """
    try:
        if len(data) <= _TOO_SHORT_TO_BE_DEEP:
            return _strict_decode(data)
        if len(data) > _TOO_SHORT_TO_BE_MANY and has_too_many_values(data):
            raise Unreadable(TOO_MANY)
        value = _strict_decode(data)
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    except Unreadable:
        raise
    except ValueError:
        value = _lenient_decode(data)
    if _may_be_deep(data, value) and _is_deep(data, value):
        raise Unreadable(TOO_DEEP)
    return value


def encode(value: Any) -> bytes:
    """Write compact JSON. A lone surrogate becomes the replacement character: strict readers fail on it."""
    try:
        data = _quick_encode(value)
    except TypeError:  # an integer beyond 64 bits, deep nesting, a lone surrogate
        return _thorough_encode(value)
    return bytes(memoryview(data)) if len(data) < SHORT else data


def encode_text(value: Any) -> str:
    """Return compact JSON as text, for a content block."""
    return encode(value).decode()


def _thorough_encode(value: Any) -> bytes:
    try:
        return _strict_encode(value)
    except UnicodeEncodeError:
        return _strict_encode(_lenient_decode(json.dumps(value).encode()))


def _lenient_decode(data: bytes | bytearray) -> Any:
    """Parse in one pass of the slower parser, so that one invalid byte does not slow a large message many times."""
    if b"\\ud" in data or b"\\uD" in data:
        data = _without_lone_surrogates(data)
    try:
        # Strict JSON has no NaN and no Infinity: they become null, as in JavaScript's output.
        return json.loads(data.decode("utf-8", "replace"), parse_constant=lambda _: None, parse_float=_finite)
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    except json.JSONDecodeError:
        raise
    except ValueError:  # parsing such a number takes quadratic time, so Python refuses it
        raise Unreadable(TOO_MANY_DIGITS) from None


def _finite(number: str) -> float | None:
    value = float(number)  # infinite for 1e999
    return value if isfinite(value) else None


def _without_lone_surrogates(data: bytes | bytearray) -> bytes | bytearray:
    if b"\0" in data:
        raise ValueError("it contains a null byte")
    if data.count(rb"\ud") + data.count(rb"\uD") > MOST_VALUES:
        raise Unreadable(TOO_MANY)
    data = data.replace(rb"\\", b"\0\0")  # replaced, so that each remaining backslash begins an escape
    return _LONE_LOW.sub(_REPLACEMENT, _LONE_HIGH.sub(_REPLACEMENT, data)).replace(b"\0\0", rb"\\")


def _may_be_deep(data: bytes | bytearray, value: Any) -> bool:
    """Cheap test: return False if there are certainly too few brackets or values for deep nesting."""
    size = len(data)
    if size <= _QUICKLY_COUNTED:
        # `count` looks at every byte; `replace` skips from one match to the next.
        rest = data.replace(b"[", b"", DEEPEST + 1)
        if size - len(rest) <= (_TOO_SHORT_FOR_OBJECTS - size) // 3:  # objects could not make up the difference
            return False
        return size - len(rest.replace(b"{", b"", DEEPEST + 1)) > DEEPEST
    containers, seen = [value], 0
    for container in containers:
        seen += len(container) if isinstance(container, dict | list) else 0
        if seen > DEEPEST:
            return True
        if isinstance(container, dict):
            containers += container.values()
        elif isinstance(container, list):
            containers += container
    return False


def _is_deep(data: bytes | bytearray, value: Any) -> bool:
    """Return whether parsed JSON is nested too deeply. Its quotes and brackets are known to be balanced."""
    if len(data) > _QUICKLY_READ:
        return _has_deep_parts(value)
    brackets = b"".join(_outside_strings(data, _NO_BRACKETS)).translate(_ALIKE)
    for _ in range(3):  # most containers are leaves, and this is faster than visiting each
        brackets = brackets.replace(b"[]", b"")
    return max(accumulate(map(_STEP.__getitem__, brackets)), default=0) + 3 > DEEPEST


def _has_deep_parts(value: Any) -> bool:
    """Check level by level: the value has few parts, and scanning the strings of a large text takes long."""
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item
            for container in level
            for item in (container.values() if type(container) is dict else container)
            if type(item) is dict or type(item) is list
        ]
        if not level:
            return False
    return True


def has_too_many_values(data: bytes | bytearray) -> bool:
    """Return whether this JSON, which may be invalid, has more than `MOST_VALUES` values.

    A few samples decide whether a full count is needed. Their random positions cannot be predicted.
    """
    if len(data) <= _TOO_SHORT_TO_BE_MANY:
        return False
    starts = [random.randrange(len(data) - _SAMPLE_BYTES) for _ in range(_SAMPLES)]
    sample = b"".join(bytes(data[start : start + _SAMPLE_BYTES]) for start in starts)
    found = sample.count(b",") + sample.count(b"[") + sample.count(b"{")
    if found * len(data) // len(sample) <= MOST_VALUES:
        return False
    values = 0
    for marks in _outside_strings(data, _NO_VALUES):
        values += len(marks)
        if values > MOST_VALUES:
            return True
    return False


def _outside_strings(data: bytes | bytearray, unwanted: bytes) -> Iterator[bytes]:
    """Yield the bytes outside of strings, without the unwanted ones, window by window to limit memory use."""
    view, begin, is_inside = memoryview(data), 0, False
    while begin < len(data):
        window = bytes(view[begin : begin + _WINDOW])
        begin += len(window)
        if begin < len(data) and (len(window) - len(window.rstrip(b"\\"))) % 2:  # an escape crosses the boundary
            begin -= 1
            window = window[:-1]
        if b"\\" in window:
            window = window.replace(rb"\\", b"").replace(rb"\"", b"")
        marks = (b'"' if is_inside else b"") + window.translate(None, unwanted)
        marks = _STRING.sub(b"", marks.replace(b'""', b""))
        is_inside = b'"' in marks
        yield marks.partition(b'"')[0]
