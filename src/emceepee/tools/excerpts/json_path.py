"""A subset of JSONPath: `$.a.b[0]`, `['a key']`, `[*]`, `.*`, `[1:3]`. The text is parsed level by level."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import islice
from typing import NamedTuple

from emceepee.bounds.budget import Budget
from emceepee.errors import InvalidArguments
from emceepee.tools.excerpts.json_members import count, find, kind_of, members
from emceepee.wire.codec import encode_text

LONGEST_PATH = 1000  # characters
MOST_KEYS, LONGEST_KEY = 20, 60  # the keys that a note lists if a key is missing, and the characters of each
_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*\s]+) | (?P<all>\.\*|\[\*\]) | \[(?P<index>-?\d{1,12})\]
    | \[(?P<slice>(?:-?\d{1,12})?:(?:-?\d{1,12})?)\] | \[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""",
    re.VERBOSE,
)
_INSTEAD = {"object": "is an object", "list": "is a list: take [*] or [0] first"}
_SUPPORTED = "There are $.key, ['any key'], [0], [-1], [1:3], [*] and .*"


class _All(Enum):
    ALL = "*"


Step = str | int | slice | _All


class Match(NamedTuple):
    """A value as raw text, and its path."""

    path: str
    text: memoryview


def parse_path(text: str) -> list[Step]:
    """Raises: InvalidArguments, with the position of the mistake."""
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
    """The values at a path. If a walk finds none, `note` explains where it ended."""

    def __init__(self, steps: Sequence[Step], budget: Budget) -> None:
        self._steps, self._budget = steps, budget
        self._deepest = -1
        self.note: str | None = None

    def of(self, text: bytes | bytearray) -> Iterator[Match]:
        """Yield the matches in the order of the text. Raises: OverBudget; ValueError if the text is no JSON."""
        return self._walk("$", memoryview(text), 0)

    def _walk(self, path: str, text: memoryview, depth: int) -> Iterator[Match]:
        if depth == len(self._steps):
            self._budget.spend(len(path))
            yield Match(path, text)
            return
        step, kind = self._steps[depth], kind_of(text)
        if kind == "object" and not isinstance(step, int | slice):
            yield from self._walk_object(path, text, depth, step)
        elif kind == "list" and not isinstance(step, str):
            yield from self._walk_list(path, text, depth, step)
        else:
            self._missed(path, depth, _INSTEAD.get(kind, "is neither object nor list"))

    def _walk_object(self, path: str, text: memoryview, depth: int, step: "str | _All") -> Iterator[Match]:
        is_missing = True
        if step is _All.ALL:
            for name, value in members(text, self._budget):
                is_missing = False
                yield from self._walk(path + _shown_name(str(name)), value, depth + 1)
        elif (found := find(text, str(step), self._budget)) is not None:
            is_missing = False
            yield from self._walk(path + _shown_name(str(step)), found, depth + 1)
        if is_missing and depth > self._deepest:
            names = [str(name)[:LONGEST_KEY] for name, _ in islice(members(text, self._budget), MOST_KEYS)]
            self._missed(path, depth, f"has the keys {', '.join(names)}")

    def _walk_list(self, path: str, text: memoryview, depth: int, step: "int | slice | _All") -> Iterator[Match]:
        span = slice(None) if step is _All.ALL else step if isinstance(step, slice) else slice(step, step + 1 or None)
        if (span.start or 0) < 0 or (span.stop or 0) < 0:
            span = slice(*span.indices(count(text, self._budget)))
        first, is_missing = span.start or 0, True
        for number, (_, item) in enumerate(members(text, self._budget, first), first):
            if span.stop is not None and number >= span.stop:
                break
            is_missing = False
            yield from self._walk(f"{path}[{number}]", item, depth + 1)
        if is_missing and depth > self._deepest:
            self._missed(path, depth, f"has {count(text, self._budget)} entries")

    def _missed(self, path: str, depth: int, what: str) -> None:
        if depth > self._deepest:
            self._deepest, self.note = depth, f"{path} {what}"


def _shown_name(name: str) -> str:
    return f".{name}" if name.isidentifier() else f"[{encode_text(name)}]"
