"""Paging of long lists: the detail of each entry, pages within a size limit, and an opaque cursor.

A list that fits is returned whole, in its own order. Pages are sorted by the key of their entries, and a cursor names
the last entry of its page. So no entry is skipped or repeated while others are added and removed.
"""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NotRequired, TypedDict

from pydantic import Field, PrivateAttr

from emceepee.errors import InvalidArguments
from emceepee.sessions.views import Described
from emceepee.surface import call_to
from emceepee.tools.declaration.declaration import Params
from emceepee.wire.codec import decode, encode
from emceepee.wire.json_types import JsonObject

SUMMARY_LENGTH = 120
Detail = Literal["names", "summary", "full"]
PAGING = ("detail", "limit", "cursor")  # arguments that every list accepts; only tools with long lists show them
Place = tuple[str, str, int]  # of an entry: its server, its name, and its number among equal names


class Paged(Params):
    """Parameters of tools whose lists can be long."""

    limit: int | None = Field(None, ge=1, description="Per page")
    cursor: str | None = Field(None, description="nextCursor")
    _room: int | None = PrivateAttr(None)

    def allow(self, room: int) -> None:
        """Raise the size limit of a page, for lists that a script reads instead of a model."""
        self._room = room

    def room_or(self, room: int) -> int:
        return room if self._room is None else self._room


class Detailed(Paged):
    """Parameters of a list that can show less of each entry."""

    detail: Detail = Field("full", description="How much of each")


ListedEntry = Annotated[JsonObject, Described("{server, …as the server sent it}")]


class ListingError(TypedDict):
    """A server that could not return its list."""

    server: str
    message: str


class Rest(TypedDict):
    """The rest of a list: `remaining` entries are left out. `note` gives the reason if the caller requested no page."""

    nextCursor: NotRequired[str]
    remaining: NotRequired[int]
    note: NotRequired[str]


class Page(Rest):
    """The fields, besides the entries, of every list over several servers."""

    errors: NotRequired[list[ListingError]]


@dataclass(frozen=True, slots=True)
class Entries:
    """The kind of entries in one list: their names, keys, and summaries."""

    tool: str  # the tool that lists them
    key: str  # the key of the list in the tool's reply
    name: str  # the key of an entry's name, which identifies it within its server
    summary: Callable[[JsonObject], JsonObject]  # returns the summary of an entry, without its name

    def place(self, entry: JsonObject) -> tuple[str, str]:
        return str(entry.get("server") or ""), str(entry.get(self.name))

    def shown(self, entry: JsonObject, detail: Detail) -> JsonObject:
        if detail == "full":
            return entry
        named = {key: entry.get(key) for key in dict.fromkeys(("server", self.name)) if key in entry}
        return named if detail == "names" else named | self.summary(entry)


def described(entry: JsonObject) -> JsonObject:
    """Return the summary of an entry that a server lists."""
    return {"summary": short(str(entry.get("description") or entry.get("title") or ""))}


def fields(*names: str) -> Callable[[JsonObject], JsonObject]:
    """Return a function that summarizes a record: these keys, with long texts cut."""

    def summarize(entry: JsonObject) -> JsonObject:
        found = {name: entry[name] for name in names if name in entry}
        return {name: short(value) if isinstance(value, str) else value for name, value in found.items()}

    return summarize


def short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= SUMMARY_LENGTH else words[: SUMMARY_LENGTH - 1] + "…"


def page(
    entries: Sequence[JsonObject], params: Paged, kind: Entries, *, room: int, detail: Detail | None = None
) -> JsonObject:
    """Return the requested entries that fit into `room` bytes, and a cursor for the others."""
    key, room = kind.key, params.room_or(room)
    detail = detail or (params.detail if isinstance(params, Detailed) else "full")
    if params.cursor is None and params.limit is None:
        whole = [kind.shown(entry, detail) for entry in entries]
        if len(encode(whole)) <= room:
            return {key: whole}
    ordered = _in_order(entries, kind)
    if params.cursor is not None:
        last = _read_cursor(params.cursor)
        ordered = [each for each in ordered if each[0] > last]
    most = len(ordered) if params.limit is None else params.limit
    shown = fitting((kind.shown(entry, detail) for _, entry in ordered[:most]), room)
    result: JsonObject = {key: shown}
    if len(shown) < len(ordered):
        cursor = _cursor(ordered[len(shown) - 1][0])
        result |= {"nextCursor": cursor, "remaining": len(ordered) - len(shown)}
        if len(shown) < min(most, len(ordered)):
            result["note"] = f"A reply has at most {room} bytes. {call_to(kind.tool, cursor=...)} returns more."
    return result


def _in_order(entries: Iterable[JsonObject], kind: Entries) -> list[tuple[Place, JsonObject]]:
    seen: dict[tuple[str, str], int] = {}
    placed: list[tuple[Place, JsonObject]] = []
    for entry in entries:
        place = kind.place(entry)
        seen[place] = number = seen.get(place, -1) + 1
        placed.append(((*place, number), entry))
    return sorted(placed, key=lambda each: each[0])


def fitting(entries: Iterable[JsonObject], room: int) -> list[JsonObject]:
    """Return as many entries as fit, in order, and at least one."""
    shown: list[JsonObject] = []
    for entry in entries:
        room -= len(encode(entry)) + 1
        if room < 0 and shown:
            break
        shown.append(entry)
    return shown


def _cursor(place: Place) -> str:
    return base64.urlsafe_b64encode(encode(list(place))).decode().rstrip("=")


def _read_cursor(cursor: str) -> Place:
    try:
        match decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))):
            case [str(server), str(name), int(number)]:
                return server, name, number
    except ValueError:
        pass
    raise InvalidArguments("cursor: pass on the nextCursor of an earlier reply, unchanged.")
