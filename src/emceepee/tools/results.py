"""The tool that reads large results in parts."""

from typing import Any, NotRequired, TypedDict, cast

from pydantic import Field

from emceepee.codec import decode, encode
from emceepee.errors import InvalidArguments
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.state.kept_result import KeptResult
from emceepee.tools.declaration import Params, tool
from emceepee.tools.grep import LineSearch
from emceepee.tools.hints import READS_RECORDS, found_by
from emceepee.tools.json_path import Match, Selection, parse_path
from emceepee.tools.large_results import SHAPE_CHARACTERS, character_boundary
from emceepee.tools.outline import preview_of, shape_of
from emceepee.tools.patterns import compile_line_pattern

LARGEST_PART = 1 << 20  # bytes
LONGEST_CHARACTER = 4  # bytes


class ReadResult(Params):
    """Which part of which result."""

    handle: str = Field(description="From large_result")
    offset: int | None = Field(None, ge=0, description="nextOffset, or any byte")
    limit: int | None = Field(None, ge=1, description="Bytes")
    grep: str | None = Field(None, description="Regex: lines")
    jsonpath: str | None = Field(None, description="$.a[0].b, [*], [1:3]")


class FoundLine(TypedDict):
    """A line that matches, or what is around the match in a long one. `offset` is where the match begins."""

    line: int
    offset: int
    text: str


class FoundValue(TypedDict):
    """A value that the path leads to. One that is too large comes as `preview`, with its size and shape."""

    path: str
    value: NotRequired[Any]
    bytes: NotRequired[int]
    shape: NotRequired[str]
    preview: NotRequired[Any]


class ResultPart(TypedDict):
    """`bytes` is the size of the whole text. With `nextOffset` there is more, from there on: a byte, or with `jsonpath`
    the number of a value. `note` says why a path leads nowhere."""

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
    room = min(params.limit or session.limits.result_part_bytes, LARGEST_PART)
    part: JsonObject = {"handle": kept.handle, "bytes": kept.size}
    if params.grep is not None:
        return cast(ResultPart, part | await _lines(params.grep, kept, offset, room, session))
    if params.jsonpath is not None:
        return cast(ResultPart, part | await _values(params.jsonpath, kept, offset, room, session))
    return cast(ResultPart, part | await _bytes(kept, offset, room, session))


async def _bytes(kept: KeptResult, offset: int, room: int, session: Session) -> JsonObject:
    """From the beginning of the character at `offset` to the end of one."""
    first = max(min(offset, kept.size) - LONGEST_CHARACTER, 0)
    data = await session.results.read(kept, first, min(offset, kept.size) - first + room + LONGEST_CHARACTER)
    begin = character_boundary(data, min(offset, kept.size) - first)
    end = character_boundary(data, begin + room)
    while end <= begin < len(data):  # at least one character
        room += 1
        end = character_boundary(data, begin + room)
    shown: JsonObject = {"offset": first + begin, "text": data[begin:end].decode("utf-8", "replace")}
    return shown | ({"nextOffset": first + end} if first + end < kept.size else {})


async def _lines(pattern: str, kept: KeptResult, offset: int, room: int, session: Session) -> JsonObject:
    regex = compile_line_pattern("grep", pattern)
    search = LineSearch(regex, start=offset, room=room, clock=session.clock)
    outcome = await search.run(session.results.parts(kept))
    return {"lines": outcome.matches} | ({} if outcome.next_offset is None else {"nextOffset": outcome.next_offset})


async def _values(path: str, kept: KeptResult, offset: int, room: int, session: Session) -> JsonObject:
    steps = parse_path(path)
    if not kept.is_json:
        raise InvalidArguments("jsonpath: this result is no JSON object or list; use grep, or offset and limit.")
    async with session.results.parsing:
        text = await session.results.read(kept, 0, kept.size)
        return _selected(Selection(steps), text, offset, room)


def _selected(selection: Selection, text: bytes, offset: int, room: int) -> JsonObject:
    values: list[JsonObject] = []
    found = 0
    for number, match in enumerate(selection.of(text)):
        found += 1
        if number < offset:
            continue
        entry = _found_value(match, room)
        room -= len(encode(entry))
        if values and room < 0:
            return {"values": values, "nextOffset": number}
        values.append(entry)
    return {"values": values} | ({"note": selection.note} if not found and selection.note else {})


def _found_value(match: Match, room: int) -> JsonObject:
    data = bytes(memoryview(match.text))
    if len(data) <= room:
        return {"path": match.path, "value": decode(data)}
    shape = shape_of(data, SHAPE_CHARACTERS)
    return {"path": match.path, "bytes": len(data), "shape": shape, "preview": preview_of(data, max(room, 1))}
