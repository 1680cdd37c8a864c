"""Conversion of values into and out of the sandbox, as JSON and within a budget.

A few lines of script can build a value that is small in the sandbox but immense as JSON, which has no shared parts.
Every conversion spends from its budget while it builds. A conversion of more than a few milliseconds runs in a thread.
"""

import asyncio
import base64
import math
from collections.abc import Callable, Collection, ItemsView, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from time import perf_counter, sleep  # noqa: TID251  # in a thread of its own, where it blocks no loop
from typing import Any, NamedTuple, TypeVar

from emceepee.bounds.budget import Budget, OverBudget

T = TypeVar("T")

DEEPEST = 100  # levels; a value that was parsed from JSON may have twice as many
MOST_BITS = 10_000  # of a whole number
LEAST_NODES = 100_000  # minimum of any budget; more at once would keep the garbage collector busy
BYTES_PER_NODE = 50  # of a large value
NODES_AT_ONCE = 5_000  # a larger value takes more than a few milliseconds and is converted in a thread
LONGEST_SECONDS = 20.0  # for a conversion in a thread; most take a fraction of one
PAUSE_SECONDS = 0.00005
_PLAIN = (str, bool, int, float, bytes)
_Open = tuple[Iterator[Any], dict[str, Any] | list[Any]]  # remaining items, and the result so far
_SHORT = range(-(1 << 63), 1 << 63)  # whole numbers whose size needs no computation
_ESCAPED = bytes({*range(0x20), 0x7F} - {*b"\b\t\n\f\r"})  # each takes six bytes as JSON


class NotJson(ValueError):
    """A value cannot be represented as JSON, or only at unreasonable cost."""


class Size(NamedTuple):
    """The share of a budget that one value took."""

    size: int = 0  # bytes
    nodes: int = 0

    @classmethod
    def of(cls, budget: Budget) -> "Size":
        return cls(budget.used_bytes, budget.used_nodes)

    def less(self, other: "Size") -> "Size":
        return Size(self.size - other.size, self.nodes - other.nodes)


class Conversions:
    """The conversions of one installation.

    Large values are converted in a thread, one at a time, to free the event loop.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, convert: Callable[[Budget], T], budget: Budget) -> T:
        """Return the result of `convert`. Raises: OverBudget, and the exceptions of `convert`."""
        most = Size(budget.max_bytes, budget.max_nodes).less(Size.of(budget))
        part = Budget(max_bytes=most.size, max_nodes=min(NODES_AT_ONCE, most.nodes))
        try:
            try:
                converted = convert(part)
            except OverBudget as error:
                if error.resource != "nodes" or most.nodes <= NODES_AT_ONCE:
                    raise
                part = Budget(max_bytes=most.size, max_nodes=most.nodes, seconds=LONGEST_SECONDS, now=_time_after_pause)
                async with self._turn:
                    converted = await asyncio.to_thread(convert, part)
        except OverBudget as error:
            whole = {"nodes": budget.max_nodes, "bytes": budget.max_bytes}
            raise OverBudget(error.resource, whole.get(error.resource, error.limit)) from None
        budget.spend(part.used_bytes, part.used_nodes)
        return converted


def _time_after_pause() -> float:
    """Return the time for a conversion in a thread. The pause releases the interpreter lock to the event loop."""
    sleep(PAUSE_SECONDS)
    return perf_counter()


def budget_of(max_bytes: int) -> Budget:
    """Return the budget for a value of up to `max_bytes` as JSON."""
    return Budget(max_bytes=max_bytes, max_nodes=max(LEAST_NODES, max_bytes // BYTES_PER_NODE))


def excess(error: OverBudget) -> str:
    """Describe the exceeded limit, such as `more than 1048576 bytes`."""
    return f"more than {error.limit:.0f} {'values' if error.resource == 'nodes' else error.resource}"


def as_json(value: Any, budget: Budget) -> Any:
    """Return the value as JSON. Raises: NotJson, OverBudget.

    It avoids recursion: Python's own stack grows and shrinks by system calls, and a hostile depth repeats them per
    value.
    """
    root: list[Any] = []
    open_containers: list[_Open] = [(iter((value,)), root)]
    while open_containers:
        items, target = open_containers[-1]
        for item in items:
            if isinstance(target, dict):
                key, item = item
                name = _key(key, budget)
            shown: Any
            if (inner := _items_of(item)) is None:
                shown = _leaf(item, budget)
            else:
                budget.spend(2)
                if len(open_containers) > DEEPEST:
                    raise NotJson(f"a value is nested more than {DEEPEST} levels deep")
                shown = {} if isinstance(inner, ItemsView) else []
                open_containers.append((iter(inner), shown))
            if isinstance(target, dict):
                target[name] = shown
            else:
                target.append(shown)
            if inner is not None:
                break
        else:
            open_containers.pop()
    return root[0]


def spend_json(value: Any, budget: Budget) -> None:
    """Count a value that was read from JSON. Raises: OverBudget."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind is str:
            budget.spend(_size(item), 0)
        elif kind is dict:
            budget.spend(0, 2 * len(item))
            budget.spend(sum(map(_size, item)), 0)
            waiting.extend(item.values())
        elif kind is list:
            budget.spend(0, len(item))
            waiting.extend(item)
        else:
            budget.spend(8, 0)


def _items_of(value: Any) -> "ItemsView[Any, Any] | Collection[Any] | None":
    """Return the members of a container; None for any other value."""
    if isinstance(value, _PLAIN) or value is None:
        return None
    if isinstance(value, list | tuple | set | frozenset):
        return value
    if isinstance(value, Mapping):
        return value.items()
    attributes = getattr(value, "attributes", None)  # of an instance of a class that the script defines
    return attributes.items() if isinstance(attributes, dict) else None


def _leaf(value: Any, budget: Budget) -> Any:
    if isinstance(value, str):
        _spend_text(value, budget)
        return value
    if value is None or isinstance(value, bool):
        budget.spend(4)
        return value
    if isinstance(value, int):
        return _whole_number(value, budget)
    if isinstance(value, float | timedelta):
        budget.spend(8)
        number = value if isinstance(value, float) else value.total_seconds()
        return number if math.isfinite(number) else None
    if isinstance(value, bytes):
        budget.spend(len(value) * 4 // 3)
        return base64.b64encode(value).decode()
    text = value.isoformat() if isinstance(value, datetime | date | time) else str(value)
    _spend_text(text, budget)
    return text


def _whole_number(value: int, budget: Budget) -> int:
    if value in _SHORT:
        budget.spend(4)
    else:
        if value.bit_length() > MOST_BITS:
            raise NotJson("a number has too many digits")
        budget.spend(value.bit_length() // 3)
    return value


def _key(key: Any, budget: Budget) -> str:
    if isinstance(key, str):
        _spend_text(key, budget, nodes=0)
        return key
    shown = as_json(key, budget)  # a key within the budget is short enough to write out
    return str(shown) if isinstance(key, bool | int | float) or key is None else str(key)


def _spend_text(text: str, budget: Budget, nodes: int = 1) -> None:
    budget.spend(len(text) + 2, nodes)
    if not (text.isascii() and text.isprintable()):
        data = text.encode("utf-8", "surrogatepass")
        budget.spend(len(data) - len(text) + 5 * (len(data) - len(data.translate(None, _ESCAPED))), 0)


def _size(text: str) -> int:
    """Return the approximate size of a text in bytes, without inspecting each character."""
    return len(text) if text.isascii() else 3 * len(text)
