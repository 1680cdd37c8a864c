"""Edit JSON with comments in place. Unchanged parts stay identical, byte for byte."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from emceepee.config.document_errors import BadDocument
from emceepee.wire.codec import DEEPEST, TOO_DEEP, TOO_MANY, has_too_many_values

_STRING = r'"(?:[^"\\]|\\.)*"'
_COMMENT = r"(?>//[^\r\n]*|/\*.*?\*/)"  # atomic: a comment ends at its first terminator
# Unclosed strings and comments match to the end of the text. Otherwise each opening would scan to the end again:
# quadratic time.
_MAYBE_STRING = r'"(?:[^"\\]|\\.)*+"?'
_MAYBE_COMMENT = r"(?>//[^\r\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?)"
_BLANK = re.compile(rf"(?:\s|{_COMMENT})*", re.DOTALL)
_REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\r\n]*?\*/)*(?://[^\r\n]*)?")
_TOKEN = re.compile(rf"{_STRING}|{_COMMENT}|[{{}}\[\]]", re.DOTALL)
_NAME = re.compile(_STRING, re.DOTALL)
_SCALAR = re.compile(r"[^\s,\]}/]+")
_NOT_JSON = re.compile(rf"({_MAYBE_STRING})|{_MAYBE_COMMENT}|,(?=(?:\s|{_MAYBE_COMMENT})*+[\]}}])", re.DOTALL)
_NO_BREAK = re.compile(r"[^\n]")
_INDENT = re.compile(r"\n([ \t]+)\S")
BOM = "\ufeff"
Step = str | int  # a member's name, or an item's index in a list
Path = Sequence[Step]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    """The position of an object member: from the name's opening quote to the end of its value, and the comma after it.

    A list item is stored the same way: its index is its name, and it starts at its value.
    """

    name: Step
    start: int
    value: int
    end: int
    comma: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Edit:
    start: int
    end: int
    text: str = ""


def read(text: str) -> Any:
    """Parse the text. Raises: BadDocument, with the position in the original text."""
    text = text.removeprefix(BOM)
    if not text.strip():
        return {}
    try:
        value = _parsed(text)
    except ValueError as error:
        raise BadDocument(f"not valid JSON: {error}") from None
    except RecursionError:
        raise BadDocument(f"not valid JSON: it is {TOO_DEEP}") from None
    if _is_deep(value):
        raise BadDocument(f"not valid JSON: it is {TOO_DEEP}")
    return value


def _parsed(text: str) -> Any:
    """Raises: ValueError, RecursionError, BadDocument."""
    try:
        return _loads(text)
    except ValueError:  # most often because of a comment
        plain = _NOT_JSON.sub(_blanked, text)
        return _loads(plain) if plain.strip() else {}


def _loads(text: str) -> Any:
    if has_too_many_values(text.encode("utf-8", "replace")):
        raise BadDocument(f"it is {TOO_MANY}")
    return json.loads(text)


def _blanked(found: "re.Match[str]") -> str:
    """Replace comments and trailing commas by spaces, and keep strings and line numbers. Raises: BadDocument."""
    if found[1]:
        return found[1]
    if found[0].startswith("/*") and not found[0].endswith("*/", 2):
        line = found.string.count("\n", 0, found.start()) + 1
        raise BadDocument(f"not valid JSON: the comment that begins in line {line} has no end")
    return _NO_BREAK.sub(" ", found[0])


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST):
        level = [
            item
            for container in level
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return False
    return True


def put(text: str, path: Path, name: Step, value: Any) -> str:
    """Return the text with `value` under `name` in the object at `path`, which is created if it is missing.

    In a list, `value` replaces the item at that index or is appended. Raises: BadDocument.
    """
    return put_all(text, path, [(name, value)])


def put_all(text: str, path: Path, new: Sequence[tuple[Step, Any]]) -> str:
    """Like `put`, with several names and values.

    If there are several, no name may exist already. Raises: BadDocument.
    """
    read(text)
    name, value = new[0]
    if not text.removeprefix(BOM).strip():
        text = (BOM if text.startswith(BOM) else "") + "{}\n"
    start = _BLANK.match(text.removeprefix(BOM)).end() + len(text) - len(text.removeprefix(BOM))  # type: ignore[union-attr]  # it matches nothing, too
    wanted = [*path, name]
    for depth, step in enumerate(wanted):
        members = _members(text, start, step, ".".join(map(str, wanted[:depth])) or "the whole")
        found = next((member for member in reversed(members) if member.name == step), None)
        if found is None or depth == len(path):
            if found is not None:
                return _edited(text, _replace(text, found, value))
            if depth < len(path):
                whole: Any = dict(new) if isinstance(name, str) else [value for _, value in new]
                for outer in reversed(wanted[depth + 1 : -1]):
                    whole = {outer: whole}
                new = [(step, whole)]
            return _edited(text, _append(text, start, members, new))
        start = found.value
    raise AssertionError("the last step returns")


def remove(text: str, path: Path, names: Iterable[Step]) -> str:
    """Return the text without the given members or items of the container at `path`. Comments stay."""
    gone = set(names)
    if not gone:
        return text
    start: int | None = _BLANK.match(text, len(text) - len(text.removeprefix(BOM))).end()  # type: ignore[union-attr]  # it matches nothing, too
    for step in path:
        start = next((each.value for each in reversed(_members(text, start or 0, step)) if each.name == step), None)
        if start is None:
            return text
    members = _members(text, start or 0, next(iter(gone)))
    edits = [_without(text, member) for member in members if member.name in gone]
    kept = [member for member in members if member.name not in gone]
    if kept and members[-1].comma is None and (comma := kept[-1].comma) is not None:
        edits.append(_Edit(start=comma, end=comma + 1))
    return _edited(text, edits)


def _without(text: str, member: _Member) -> _Edit:
    """Remove a member with its comma, and the whole line if nothing else is on it."""
    start, end = member.start, member.end if member.comma is None else member.comma + 1
    line = text.rfind("\n", 0, start) + 1
    if text[line:start].strip():
        return _Edit(start=start, end=end)
    after = end
    while text[after : after + 1] in (" ", "\t", "\r"):
        after += 1
    if text[after : after + 1] == "\n":
        return _Edit(start=line, end=after + 1)
    return _Edit(start=start, end=end)


def _replace(text: str, member: _Member, value: Any) -> list[_Edit]:
    shown = _shown(text, value, _indent_of_line(text, member.start))
    return [_Edit(start=member.value, end=member.end, text=shown)]


def _append(text: str, start: int, members: Sequence[_Member], added: Sequence[tuple[Step, Any]]) -> list[_Edit]:
    outer = _indent_of_line(text, start)
    inner = outer + _step(text)
    if not members:
        close = _end_of(text, start) - 1
        kept = text[start + 1 : close].rstrip()  # empty, or comments
        new = f"{_shown_members(text, added, inner)}{_newline(text)}{outer}"
        return [_Edit(start=start + 1 + len(kept), end=close, text=new)]
    last = members[-1]
    if "\n" not in text[start : members[0].start]:  # all on one line
        new = ", ".join(f"{_label(name)}{json.dumps(value, ensure_ascii=False)}" for name, value in added)
        if last.comma is not None:
            return [_Edit(start=last.comma + 1, end=last.comma + 1, text=f" {new},")]
        return [_Edit(start=last.end, end=last.end, text=f", {new}")]
    inner = _indent_of_line(text, last.start)
    new = _shown_members(text, added, inner)
    if last.comma is not None:
        place = _rest_of_line(text, last.comma + 1)
        return [_Edit(start=place, end=place, text=f"{new},")]
    place = _rest_of_line(text, last.end)
    return [_Edit(start=last.end, end=last.end, text=","), _Edit(start=place, end=place, text=new)]


def _rest_of_line(text: str, start: int) -> int:
    """Return the end of the comments on the same line, which describe the value before them."""
    found = _REST_OF_LINE.match(text, start)
    assert found is not None  # the pattern can match an empty string
    return start + len(found[0].rstrip())


def _shown_members(text: str, members: Sequence[tuple[Step, Any]], indent: str) -> str:
    """Format each member on its own line."""
    lines = (f"{_newline(text)}{indent}{_label(name)}{_shown(text, value, indent)}" for name, value in members)
    return ",".join(lines)


def _label(name: Step) -> str:
    return "" if isinstance(name, int) else f"{json.dumps(name, ensure_ascii=False)}: "


def _shown(text: str, value: Any, indent: str) -> str:
    lines = json.dumps(value, indent=_step(text), ensure_ascii=False).split("\n")
    return f"{_newline(text)}{indent}".join(lines)


def _step(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_of_line(text: str, place: int) -> str:
    line = text[text.rfind("\n", 0, place) + 1 : place].removeprefix(BOM)
    return line[: len(line) - len(line.lstrip())]


def _members(text: str, start: int, step: Step, where: str = "where the servers stand") -> list[_Member]:
    """Return the members of the object, or the items of the list if `step` is a number, at `start`.

    Raises: BadDocument.
    """
    found: list[_Member] = []
    is_list = isinstance(step, int)
    if text[start : start + 1] != ("[" if is_list else "{"):
        raise BadDocument(f"{where}: expected {'a list' if is_list else 'an object'}")
    place = _skip_blank(text, start + 1)
    while text[place : place + 1] != ("]" if is_list else "}"):
        name, value = (len(found), place) if is_list else _name_at(text, place)
        end = _end_of(text, value)
        after = _skip_blank(text, end)
        comma = after if text[after : after + 1] == "," else None
        found.append(_Member(name=name, start=place, value=value, end=end, comma=comma))
        place = after if comma is None else _skip_blank(text, comma + 1)
    return found


def _name_at(text: str, place: int) -> tuple[str, int]:
    """Return the name at `place`, and the start of its value. Raises: BadDocument."""
    name = _NAME.match(text, place)
    colon = _skip_blank(text, name.end()) if name else -1
    if name is None or text[colon : colon + 1] != ":":
        raise BadDocument(f"not valid JSON at character {place}")
    return json.loads(name[0]), _skip_blank(text, colon + 1)


def _end_of(text: str, start: int) -> int:
    """Return the end of the value that begins at `start`. Raises: BadDocument."""
    if text[start : start + 1] not in ("{", "["):
        found = _NAME.match(text, start) or _SCALAR.match(text, start)
        if found is None:
            raise BadDocument(f"not valid JSON at character {start}")
        return found.end()
    depth = 0
    for token in _TOKEN.finditer(text, start):
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    raise BadDocument("not valid JSON: it ends too early")


def _skip_blank(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


def _edited(text: str, edits: Iterable[_Edit]) -> str:
    in_order = sorted(edits, key=lambda edit: edit.start)
    for edit in reversed(in_order):  # not sorted in reverse: at equal positions, the first edit stays first
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text
