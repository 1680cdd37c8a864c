"""A small part of JSONPath: `$.a.b[0]`, `['a key']`, `[*]`, `.*`, `[1:3]`. The text is opened level by level."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from emceepee.codec import encode_text
from emceepee.errors import InvalidArguments
from emceepee.tools.outline import open_list, open_object

LONGEST_PATH = 1000  # characters
MOST_KEYS = 20  # that are named where one is missing
_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*\s]+) | (?P<all>\.\*|\[\*\]) | \[(?P<index>-?\d{1,12})\]
    | \[(?P<slice>(?:-?\d{1,12})?:(?:-?\d{1,12})?)\] | \[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE,
)
_SUPPORTED = "There are $.key, ['any key'], [0], [-1], [1:3], [*] and .*"


class _All(Enum):
    ALL = "*"


Step = str | int | slice | _All


class Match(NamedTuple):
    """A value, as it stands in the text, and where."""

    path: str
    text: bytes | msgspec.Raw


def parse_path(text: str) -> list[Step]:
    """Raises: InvalidArguments, naming where the trouble is."""
    path = text.strip()
    position = 1 if path.startswith("$") else 0
    if len(path) > LONGEST_PATH:
        raise _bad(f"it is longer than {LONGEST_PATH} characters", LONGEST_PATH)
    if not position:
        path = path if path.startswith((".", "[")) else f".{path}"
    steps: list[Step] = []
    while position < len(path):
        if path.startswith("..", position):
            raise _bad("descending with .. is not supported; grep finds text at any depth", position)
        if path.startswith(("[?", "[("), position):
            raise _bad("filters and expressions are not supported", position)
        found = _STEP.match(path, position)
        if found is None:
            raise _bad("no step can be read", position)
        steps.append(_step(found))
        position = found.end()
    return steps


def _step(found: re.Match[str]) -> Step:
    match found.lastgroup, found.group(found.lastgroup or 0):
        case "all", _:
            return _All.ALL
        case "index", number:
            return int(number)
        case "slice", span:
            first, _, last = span.partition(":")
            return slice(int(first) if first else None, int(last) if last else None)
        case "quoted", quoted:
            return re.sub(r"\\(.)", r"\1", quoted[1:-1])
        case _, name:
            return str(name)


def _bad(problem: str, position: int) -> InvalidArguments:
    return InvalidArguments(
        f"jsonpath cannot be used: {problem}, at position {position}. {_SUPPORTED}.",
        details={"argument": "jsonpath", "position": position},
    )


class Selection:
    """The values that a path leads to. After a walk that found none, `note` says where it ended."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._deepest = -1
        self.note: str | None = None

    def of(self, text: bytes) -> Iterator[Match]:
        """In the order of the text. Raises: ValueError if it is no JSON."""
        return self._walk("$", text, 0)

    def _walk(self, path: str, text: bytes | msgspec.Raw, depth: int) -> Iterator[Match]:
        if depth == len(self._steps):
            yield Match(path, text)
            return
        step, first = self._steps[depth], bytes(memoryview(text)[:64]).lstrip()[:1]
        if first == b"{" and not isinstance(step, int | slice):
            entries = open_object(text)
            names = list(entries) if step is _All.ALL else [step] if step in entries else []
            if not names:
                self._missed(path, depth, f"has the keys {', '.join(list(entries)[:MOST_KEYS])}")
            for name in names:
                yield from self._walk(path + _shown_name(str(name)), entries[str(name)], depth + 1)
        elif first == b"[" and not isinstance(step, str):
            items = open_list(text)
            numbers = range(len(items))
            wanted = numbers if step is _All.ALL else _in_range(numbers, step)
            if not wanted:
                self._missed(path, depth, f"has {len(items)} entries")
            for number in wanted:
                yield from self._walk(f"{path}[{number}]", items[number], depth + 1)
        else:
            kind = {b"{": "is an object", b"[": "is a list: take [*] or [0] first"}.get(
                first, "is neither object nor list"
            )
            self._missed(path, depth, kind)

    def _missed(self, path: str, depth: int, what: str) -> None:
        if depth > self._deepest:
            self._deepest, self.note = depth, f"{path} {what}"


def _in_range(numbers: range, step: Any) -> Sequence[int]:
    if isinstance(step, slice):
        return numbers[step]
    return [numbers[step]] if -len(numbers) <= step < len(numbers) else []


def _shown_name(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{encode_text(name)}]"
