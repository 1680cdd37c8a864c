"""An outline of a large JSON text: its shape in one line, and a shortened version in JSON.

The text is parsed level by level within budgets, so most of it is skipped and never becomes objects.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.tools.excerpts.json_members import OPENED_AT_ONCE, Member, count, kind_of, members
from emceepee.wire.codec import Unreadable, decode, encode
from emceepee.wire.json_types import JsonObject

MOST_SAMPLED = 10  # entries of a list that are read
DEEPEST = 6  # levels of a shape
DEEPEST_PREVIEW = 20  # levels
LEAST_ROOM = 24  # characters for a value that is cut
LONGEST_NAME = 60  # characters of a name in a shape
MOST_NAMES = 100  # of an object in a shape
MOST_NODES = 20_000  # nodes that a shape or a preview reads
MOST_COUNTED = 2_000_000  # entries of lists and objects that are counted for an outline
MOST_SECONDS = 1.0  # for each of the three
TIMES_READ = 8  # how often the text may be read in total, because each level reads its bytes again
_MORE = "…"
_WHOLE_CHARACTERS = re.compile(rb'(?:[^\\"]++|\\u[0-9a-fA-F]{4}|\\[^u])*+')


class Count(NamedTuple):
    """An exact number of entries, or a lower bound."""

    number: int
    is_exact: bool

    def __str__(self) -> str:
        return f"{self.number}{'' if self.is_exact else '+'}"


class _Either(list[Any]):
    """A shape with several alternatives."""


class Outline:
    """Reads one text until its budgets are used up. The rest is counted, or marked as more."""

    def __init__(self, text: bytes | bytearray | memoryview, *, now: Callable[[], float] = perf_counter) -> None:
        view = memoryview(text)
        most = TIMES_READ * max(len(view), OPENED_AT_ONCE)
        self._shaping, self._previewing, self._counting = (
            Budget(max_bytes=most, max_nodes=nodes, seconds=MOST_SECONDS, now=now)
            for nodes in (MOST_NODES, MOST_NODES, MOST_COUNTED)
        )
        self._root = _Node(view)

    @property
    def nodes(self) -> int:
        """Return how many nodes were read or counted."""
        return self._shaping.used_nodes + self._previewing.used_nodes + self._counting.used_nodes

    def shape(self, room: int) -> str:
        """Return a shape such as `{items: [{id: number, name?: string} x1200], next: string}`.

        It has at most `room` characters. Raises: ValueError if the text is no JSON.
        """
        shape = self._shape(self._root, DEEPEST)
        shown = ""
        for depth in range(DEEPEST, 0, -1):
            shown = _written(shape, depth)
            if len(shown) <= room:
                return shown
        return shown[: room - 1] + _MORE

    def preview(self, room: int) -> Any:
        """Return a shortened value that takes at most `room` bytes as JSON. Marks show the omitted parts.

        Raises: ValueError if the text is no JSON.
        """
        share = room
        for _ in range(8):
            value = self._preview(self._root, share, DEEPEST_PREVIEW)
            if len(encode(value)) <= room:
                return value
            share = share * 3 // 5
        return _MORE

    # The shape of an object is a dict, of a list [shape of the entries, count], and of any other value a text.

    def _shape(self, node: "_Node", depth: int) -> Any:
        if node.kind == "object":
            shapes: JsonObject = {}
            for name, inner in islice(node.members(self._shaping), MOST_NAMES if depth else 0):
                shapes[_short_name(name)] = self._shape(inner, depth - 1)
            if node.has_more_than(len(shapes), self._shaping):
                shapes[_MORE] = None
            return shapes
        if node.kind == "list":
            merged: Any = None
            for number, (_, inner) in enumerate(islice(node.members(self._shaping), MOST_SAMPLED if depth else 0)):
                shape = self._shape(inner, depth - 1)
                merged = _merged(merged, shape) if number else shape
            return [merged, node.count(self._counting)]
        return node.kind

    def _preview(self, node: "_Node", room: int, depth: int) -> Any:
        if len(node.text) <= room:
            return _decoded(node.text)
        match node.kind:
            case "object":
                return self._short_object(node, room, depth - 1) if depth else _MORE
            case "list":
                return self._short_list(node, room, depth - 1) if depth else _MORE
            case "string":
                return _beginning(node.text, room)
        return _decoded(node.text)  # a number is never long enough to matter

    def _short_object(self, node: "_Node", room: int, depth: int) -> JsonObject:
        shown: JsonObject = {}
        left = room
        for more, name, inner in _looking_ahead(node.members(self._previewing)):
            if left < LEAST_ROOM + len(name):
                break
            share = max(left // more, LEAST_ROOM) - len(name) - 4
            shown[name] = self._preview(inner, max(share, LEAST_ROOM), depth)
            left -= len(name) + 4 + len(encode(shown[name]))
        if rest := self._rest(node, len(shown)):
            shown[_MORE] = f"{rest} keys"
        return shown

    def _short_list(self, node: "_Node", room: int, depth: int) -> list[Any]:
        shown: list[Any] = []
        left = room - LEAST_ROOM
        for more, _, inner in _looking_ahead(node.members(self._previewing)):
            if left < LEAST_ROOM and shown:
                break
            shown.append(self._preview(inner, max(left // 2 if more > 1 else left, LEAST_ROOM), depth))
            left -= len(encode(shown[-1])) + 1
        if rest := self._rest(node, len(shown)):
            shown.append(f"{_MORE} {rest}")
        return shown

    def _rest(self, node: "_Node", shown: int) -> str:
        """Return a text such as `1190 more`, or "" if all members are shown."""
        if not node.has_more_than(shown, self._previewing):
            return ""
        number, is_exact = node.count(self._counting)
        return f"{Count(number - shown, is_exact)} more" if number > shown else "more"


class _Node:
    """A value and its members that were read so far."""

    __slots__ = ("_budget", "_count", "_is_whole", "_read", "_unread", "kind", "text")

    def __init__(self, text: memoryview) -> None:
        self.text, self.kind = text, kind_of(text)
        self._read: list[tuple[str, _Node]] = []
        self._unread: Iterator[Member] = iter(())
        self._budget: Budget | None = None  # the budget of `_unread`
        self._is_whole = False
        self._count: Count | None = None

    def members(self, budget: Budget) -> "Iterator[tuple[str, _Node]]":
        """Yield names and members until the budget is used up. Names in a list are empty."""
        position = 0
        while position < len(self._read) or self._read_on(budget):
            yield self._read[position]
            position += 1

    def has_more_than(self, number: int, budget: Budget) -> bool:
        """Return whether there are more members, or possibly more because the budget is used up."""
        return number < len(self._read) or self._read_on(budget) or not self._is_whole

    def count(self, budget: Budget) -> Count:
        if self._count is None:
            before = budget.used_nodes
            try:
                self._count = Count(count(self.text, budget), is_exact=True)
            except OverBudget:
                self._count = Count(max(budget.used_nodes - before, len(self._read)), is_exact=False)
        return self._count

    def _read_on(self, budget: Budget) -> bool:
        """Read one more member. Return False at the end, or if the budget is used up."""
        if self._is_whole:
            return False
        if self._budget is not budget:
            self._budget, self._unread = budget, members(self.text, budget, len(self._read))
        try:
            found = next(self._unread, None)
        except OverBudget:
            self._budget = None
            return False
        if found is None:
            self._is_whole = True
            return False
        self._read.append((found.name or "", _Node(found.text)))
        return True


def _looking_ahead(found: "Iterator[tuple[str, _Node]]") -> "Iterator[tuple[int, str, _Node]]":
    """Yield each node with the number of remaining nodes, itself included; the count stops at four."""
    waiting = deque(islice(found, 4))
    while waiting:
        name, node = waiting[0]
        yield len(waiting), name, node
        waiting.popleft()
        waiting.extend(islice(found, 1))


def _decoded(text: memoryview) -> Any:
    try:
        return decode(bytes(text))
    except Unreadable:
        return _MORE


def _beginning(text: memoryview, room: int) -> str:
    """Return the beginning of a string."""
    found = _WHOLE_CHARACTERS.match(text[1 : max(room - 1, 1)])
    return str(decode(b'"' + (found[0] if found else b"") + b'"')) + _MORE


def _short_name(name: str) -> str:
    return name if len(name) <= LONGEST_NAME else name[:LONGEST_NAME] + _MORE


def _merged(one: Any, other: Any) -> Any:
    """Merge the shapes of two values."""
    if one == other:
        return one
    if isinstance(one, dict) and isinstance(other, dict):
        return _merged_objects(one, other)
    if _is_list(one) and _is_list(other):
        return [one[0] if other[0] is None else other[0] if one[0] is None else _merged(one[0], other[0]), None]
    options = _Either(one if isinstance(one, _Either) else (one,))
    for shape in other if isinstance(other, _Either) else (other,):
        for number, option in enumerate(options):
            if option == shape or (type(option) is type(shape) and not isinstance(shape, str)):
                options[number] = _merged(option, shape)
                break
        else:
            options.append(shape)
    return options


def _merged_objects(one: JsonObject, other: JsonObject) -> JsonObject:
    both: JsonObject = {}
    for name in {name.removesuffix("?"): None for name in (*one, *other)}:
        mine, its = _entry(one, name), _entry(other, name)
        if mine is None or its is None:
            both[f"{name}?" if name != _MORE else name] = (mine or its)[0]  # type: ignore[index]  # one of them has it
        else:
            both[name + ("?" if mine[1] or its[1] else "")] = _merged(mine[0], its[0])
    return both


def _entry(shape: JsonObject, name: str) -> tuple[Any, bool] | None:
    """Return the shape of an entry, and whether the entry may be missing."""
    if name in shape:
        return shape[name], False
    return (shape[f"{name}?"], True) if f"{name}?" in shape else None


def _is_list(shape: Any) -> bool:
    return isinstance(shape, list) and not isinstance(shape, _Either)


def _written(shape: Any, depth: int) -> str:
    if isinstance(shape, _Either):
        return " | ".join(dict.fromkeys(_written(option, depth) for option in shape))
    if isinstance(shape, dict):
        if not depth and shape:
            return "{…}"
        shown = [_MORE if inner is None else f"{name}: {_written(inner, depth - 1)}" for name, inner in shape.items()]
        return "{" + ", ".join(shown) + "}"
    if isinstance(shape, list):
        inner, number = shape
        if number == Count(0, is_exact=True):
            return "[]"
        times = "" if number is None else f" x{number}"
        return f"[{_written(inner, depth - 1) if depth and inner is not None else _MORE}{times}]"
    return str(shape)
