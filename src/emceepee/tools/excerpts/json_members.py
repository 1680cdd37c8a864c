"""The members of a JSON text, within a budget: most of a large text is skipped and never becomes objects.

The text must be valid JSON. `is_json` checks all of it without allocating memory for it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from emceepee.bounds.budget import Budget
from emceepee.wire.codec import TOO_DEEP, Unreadable, decode

OPENED_AT_ONCE = 64 << 10  # bytes of a container whose members are parsed in one call, which is faster
MOST_TRIES = 4  # attempts to find the end of a group of members
LONGEST_PAUSE = 1024  # members that are read one at a time before the next attempt
LONGEST_NAME = 8 << 10  # bytes; a longer name is cut
_open_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_open_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_skip = msgspec.json.Decoder(msgspec.Raw).decode
_BLANKS = b" \t\n\r"
_BLANK = re.compile(rb"[ \t\n\r]*+")
_NEXT = re.compile(rb"[ \t\n\r]*+[:,]?[ \t\n\r]*+")
_KINDS = {b"{": "object", b"[": "list", b'"': "string", b"t": "boolean", b"f": "boolean", b"n": "null"}
# Only this error message of msgspec reveals the end of a value. A new version of msgspec is tested before it is used.
_END = re.compile(r"trailing characters \(byte (\d+)\)")


_MARKS = {"object": b"},", "list": b"],", "string": b'",'}  # the end of a value, by its kind, and a comma
_CLOSING = b"]}"
_Opened = dict[str, msgspec.Raw] | list[msgspec.Raw]


class Member(NamedTuple):
    """A value in an object or a list, as raw text. Values in a list have no name."""

    name: str | None
    text: memoryview


def is_json(text: bytes) -> bool:
    """Return whether the text is a complete JSON object or list."""
    if kind_of(memoryview(text)) not in ("object", "list"):
        return False
    try:
        _skip(text)
    except (ValueError, RecursionError):
        return False
    return True


def kind_of(text: memoryview) -> str:
    """Return the kind of the value at the beginning: object, list, string, boolean, null, or number."""
    begin = _after_blanks(text, 0)
    return _KINDS.get(bytes(text[begin : begin + 1]), "number")


def members(text: memoryview, budget: Budget, first: int = 0) -> Iterator[Member]:
    """Yield the members of an object or a list, from number `first` on.

    Raises: OverBudget; ValueError if the text is neither.
    """
    number, position = 0, _inside(text)
    is_object = kind_of(text) == "object"
    if not first and len(text) <= OPENED_AT_ONCE:
        budget.spend(len(text), 0)
        if (opened := _opened(text, is_object)) is not None:
            for name, raw in opened.items() if isinstance(opened, dict) else ((None, raw) for raw in opened):
                budget.spend()
                yield Member(name, memoryview(raw))
            return
    elif first:
        for begin, many in _strides(text, budget):
            if number + len(many) > first:
                position = begin
                break
            number += len(many)
        else:
            return
    while text[position] not in _CLOSING:
        member, position = _member_at(text, position, is_object, budget)
        if number >= first:
            yield member
        number += 1


def count(text: memoryview, budget: Budget) -> int:
    """Return the number of members. Raises: OverBudget, ValueError."""
    return sum(len(opened) for _, opened in _strides(text, budget))


def find(text: memoryview, name: str, budget: Budget) -> memoryview | None:
    """Return the member of an object with this name, or None. Raises: OverBudget, ValueError."""
    for _, opened in _strides(text, budget):
        if isinstance(opened, dict) and name in opened:
            return memoryview(opened[name])
    return None


def _strides(text: memoryview, budget: Budget) -> "Iterator[tuple[int, _Opened]]":
    """Yield all members in groups as large as possible, each with the position of its first member."""
    is_object, position = kind_of(text) == "object", _inside(text)
    mark = b"," if is_object else _MARKS.get(kind_of(text[position:]), b",")
    single, pause = 0, 1
    while text[position] not in _CLOSING:
        if not single:
            for end in _likely_ends(text[position:], mark):
                budget.spend(end, 0)
                if (opened := _opened_part(text[position : position + end], is_object)) is not None:
                    budget.spend(0, len(opened))
                    yield position, opened
                    position, pause = _after_mark(text, position + end), 1
                    break
            else:
                single, pause = pause, min(2 * pause, LONGEST_PAUSE)
            continue
        begin = position
        member, position = _member_at(text, position, is_object, budget)
        raw = msgspec.Raw(member.text)
        yield begin, {str(member.name): raw} if is_object else [raw]
        single -= 1


def _likely_ends(text: memoryview, mark: bytes) -> Iterator[int]:
    """Yield positions at which a group of members may end. If the text before one can be parsed, it is such an end."""
    window = bytes(text[:OPENED_AT_ONCE])
    if len(text) <= OPENED_AT_ONCE:
        yield len(window.rstrip(_BLANKS)) - 1
        return
    end = len(window)
    for _ in range(MOST_TRIES):
        end = window.rfind(mark, 0, end) + len(mark) - 1
        if end < len(mark):
            return
        yield end


def _opened_part(text: memoryview, is_object: bool) -> "_Opened | None":
    return _opened(b"".join((b"{", text, b"}") if is_object else (b"[", text, b"]")), is_object)


def _opened(text: bytes | memoryview, is_object: bool) -> "_Opened | None":
    """Parse a container. Return None if the text is incomplete, or a name in it is no valid UTF-8."""
    try:
        return _open_object(text) if is_object else _open_list(text)
    except (ValueError, RecursionError):
        return None


def _inside(text: memoryview) -> int:
    """Return the position of the first member."""
    return _after_blanks(text, _after_blanks(text, 0) + 1)


def _member_at(text: memoryview, position: int, is_object: bool, budget: Budget) -> tuple[Member, int]:
    """Return the member at this position, and the position of the next one."""
    name = None
    if is_object:
        end = _end(text, position)
        budget.spend(end - position, 0)
        name = _name(text[position:end])
        position = _after_mark(text, end)
    end = _end(text, position)
    budget.spend(end - position)
    return Member(name, _trimmed(text[position:end])), _after_mark(text, end)


def _end(text: memoryview, position: int) -> int:
    """Return the position of the mark after the value at this position."""
    try:
        _skip(text[position:])
    except msgspec.DecodeError as error:
        if found := _END.search(str(error)):
            return position + int(found[1]) - 1
        raise
    except RecursionError:
        raise Unreadable(TOO_DEEP) from None
    raise ValueError("the value is in no container")


def _name(text: memoryview) -> str:
    text = _trimmed(text)
    if len(text) <= LONGEST_NAME:
        return str(decode(bytes(text)))
    return bytes(text[1:LONGEST_NAME]).decode("utf-8", "ignore") + "…"


def _trimmed(text: memoryview) -> memoryview:
    """Remove trailing whitespace."""
    while text[-1] in _BLANKS:
        tail = bytes(text[-4096:])
        text = text[: len(text) - len(tail) + len(tail.rstrip(_BLANKS))]
    return text


def _after_blanks(text: memoryview, position: int) -> int:
    found = _BLANK.match(text, position)
    return found.end() if found else position


def _after_mark(text: memoryview, position: int) -> int:
    """Return the position after whitespace and an optional colon or comma."""
    found = _NEXT.match(text, position)
    return found.end() if found else position
