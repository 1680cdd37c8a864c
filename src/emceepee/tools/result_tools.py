"""The tool that reads large results in parts."""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict, cast

from pydantic import Field

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.codemode.values import excess
from emceepee.errors import InvalidArguments
from emceepee.sessions.results.long_work import Now
from emceepee.sessions.session import Session
from emceepee.state.stored_result import StoredResult
from emceepee.tools.declaration.declaration import Params, tool
from emceepee.tools.declaration.hints import READS_RECORDS, found_by
from emceepee.tools.excerpts.grep import LineSearch
from emceepee.tools.excerpts.json_path import Match, Selection, Step, parse_path
from emceepee.tools.excerpts.large_results import SHAPE_CHARACTERS, character_boundary
from emceepee.tools.excerpts.outline import Outline
from emceepee.tools.excerpts.patterns import compile_line_pattern
from emceepee.wire.codec import TOO_DEEP, Unreadable, decode, encode
from emceepee.wire.json_types import JsonObject

_OTHER_WAYS = "grep finds text at any depth; offset and limit read bytes."
RESULT_PART_BYTES, LARGEST_PART = 16 << 10, 1 << 20  # bytes per reply: the default, and the maximum
LONGEST_CHARACTER = 4  # bytes
MOST_VISITED = 4_000_000  # values that a search by one path may visit
MOST_SECONDS = 5.0  # for such a search, which takes three on an idle machine
TIMES_READ = 8  # how often the text may be read in total, because each level reads its bytes again


class ReadResult(Params):
    """Parameters: the part of a result to read."""

    handle: str = Field(description="From large_result")
    offset: int | None = Field(None, ge=0, description="nextOffset, or any byte")
    limit: int | None = Field(None, ge=1, description="Bytes")
    grep: str | None = Field(None, description="Regex: lines")
    jsonpath: str | None = Field(None, description="$.a[0].b, [*], [1:3]")


class FoundLine(TypedDict):
    """A matching line, or the part of a long line around the match. `offset` is where the match begins."""

    line: int
    offset: int
    text: str


class FoundValue(TypedDict):
    """A value at the path. If it is too large, it is replaced by a `preview` with its size and shape."""

    path: str
    value: NotRequired[Any]
    bytes: NotRequired[int]
    shape: NotRequired[str]
    preview: NotRequired[Any]


class ResultPart(TypedDict):
    """`bytes` is the size of the whole text. `nextOffset` is where the rest begins: a byte, or with `jsonpath` the
    number of a value. `note` explains why a path matches nothing, or why its search ended early."""

    handle: str
    bytes: int
    offset: NotRequired[int]
    text: NotRequired[str]
    lines: NotRequired[list[FoundLine]]
    values: NotRequired[list[FoundValue]]
    nextOffset: NotRequired[int]
    note: NotRequired[str]


@tool(title="Read a large result", effect=READS_RECORDS, load=found_by("large result rest handle grep jsonpath"))
async def read_result(params: ReadResult, session: Session) -> ResultPart:
    """Read part of a large result: bytes, matching lines (grep) or values (jsonpath)."""
    if params.grep is not None and params.jsonpath is not None:
        raise InvalidArguments("grep, jsonpath: give one of them.")
    kept, offset = session.results.get(params.handle), params.offset or 0
    room = min(params.limit or RESULT_PART_BYTES, LARGEST_PART)
    part: JsonObject = {"handle": kept.handle, "bytes": kept.size}
    if params.grep is not None:
        return cast(ResultPart, part | await _lines(params.grep, kept, offset, room, session))
    if params.jsonpath is not None:
        return cast(ResultPart, part | await _values(params.jsonpath, kept, offset, room, session))
    return cast(ResultPart, part | await _bytes(kept, offset, room, session))


async def _bytes(kept: StoredResult, offset: int, room: int, session: Session) -> JsonObject:
    """Return the text from `offset` on, without cutting a character at either end."""
    first = max(min(offset, kept.size) - LONGEST_CHARACTER, 0)
    data = await session.results.read(kept, first, min(offset, kept.size) - first + room + LONGEST_CHARACTER)
    begin = character_boundary(data, min(offset, kept.size) - first)
    end = character_boundary(data, begin + room)
    while end <= begin < len(data):  # at least one character
        room += 1
        end = character_boundary(data, begin + room)
    shown: JsonObject = {"offset": first + begin, "text": data[begin:end].decode("utf-8", "replace")}
    return shown | ({"nextOffset": first + end} if first + end < kept.size else {})


async def _lines(pattern: str, kept: StoredResult, offset: int, room: int, session: Session) -> JsonObject:
    regex = compile_line_pattern("grep", pattern)
    search = LineSearch(regex, start=offset, room=room, clock=session.clock)
    outcome = await search.run(session.results.parts(kept))
    return {"lines": outcome.matches} | ({} if outcome.next_offset is None else {"nextOffset": outcome.next_offset})


async def _values(path: str, kept: StoredResult, offset: int, room: int, session: Session) -> JsonObject:
    steps = parse_path(path)
    if not kept.is_json:
        raise InvalidArguments("jsonpath: this result is no JSON object or list; use grep, or offset and limit.")
    return await session.results.parsing.run_on(
        lambda: session.results.read_whole(kept), lambda text, now: _selected(steps, text, offset, room, now)
    )


def _selected(steps: Sequence[Step], text: bytearray, offset: int, room: int, now: Now) -> JsonObject:
    most = TIMES_READ * max(len(text), LARGEST_PART)
    budget = Budget(max_bytes=most, max_nodes=MOST_VISITED, seconds=MOST_SECONDS, now=now)
    selection = Selection(steps, budget)
    values: list[JsonObject] = []
    found = 0
    try:
        for number, match in enumerate(selection.of(text)):
            found += 1
            if number < offset:
                continue
            entry = _found_value(match, room, now, budget)
            room -= len(encode(entry))
            if values and room < 0:
                return {"values": values, "nextOffset": number}
            values.append(entry)
    except OverBudget as error:
        return {"values": values, "note": _ended_early(error, found)}
    except (Unreadable, RecursionError):
        raise InvalidArguments(f"jsonpath: the result is {TOO_DEEP} there. {_OTHER_WAYS}") from None
    return {"values": values} | ({"note": selection.note} if not found and selection.note else {})


def _ended_early(error: OverBudget, found: int) -> str:
    return (
        f"The search ended after {found} matches, because it takes {excess(error)}. Matches that come later in the "
        f"text are missing. Pass a path that leads to fewer values. {_OTHER_WAYS}"
    )


def _found_value(match: Match, room: int, now: Now, budget: Budget) -> JsonObject:
    found: JsonObject = {"path": match.path}
    if len(match.text) <= room:
        return found | {"value": decode(bytes(match.text))}
    outline = Outline(match.text, now=now)
    shape, preview = outline.shape(SHAPE_CHARACTERS), outline.preview(max(room, 1))
    budget.spend(nodes=outline.nodes)
    return found | {"bytes": len(match.text), "shape": shape, "preview": preview}
