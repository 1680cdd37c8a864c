"""Check an answer to a form against the backend's schema, and fill in the defaults."""

import re
from collections.abc import Iterable, Iterator
from datetime import date, datetime
from itertools import chain, islice
from typing import Any

from emceepee.errors import MOST_PROBLEMS, Problem
from emceepee.state.regex import LONGEST_PATTERN, BadPattern, Regex, TooMuchWork, Work
from emceepee.wire.json_types import JsonObject

MOST_NAMES = 20  # names of fields or choices in one message
MOST_PATTERN_CHARACTERS = 5000  # of all patterns of a form: compiling a thousand takes up to 20 ms
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
# Python's own parser accepts more than RFC 3339, and the backend would reject such values.
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


_MORE = Problem(None, "more", "there may be more")
_Mismatch = tuple[str, str]  # code and message


class _Check:
    """The check of one answer. It bounds the total work, and parses the choices and patterns of each rule once."""

    def __init__(self) -> None:
        self._work, self._characters_left = Work(), MOST_PATTERN_CHARACTERS
        self._regexes: dict[str, Regex | None] = {}
        self._choices: dict[int, tuple[list[Any], frozenset[Any]] | None] = {}

    def choices(self, rule: JsonObject) -> tuple[list[Any], frozenset[Any]] | None:
        """Return the allowed values in their order, and the plain ones among them as a set."""
        if id(rule) not in self._choices:
            listed = _choices(rule)
            plain = frozenset(value for value in listed or () if not isinstance(value, list | dict))
            self._choices[id(rule)] = None if listed is None else (listed, plain)
        return self._choices[id(rule)]

    def matches(self, pattern: str, value: str) -> bool:
        """Return whether the value matches the pattern; True if that cannot be checked here.

        A backend's pattern is untrusted. If RE2 does not support it, or the match would take long, the backend decides.
        """
        if len(pattern) > LONGEST_PATTERN:
            return True
        if pattern not in self._regexes:
            self._regexes[pattern] = self._compiled(pattern)
        regex = self._regexes[pattern]
        try:
            return regex is None or regex.search(value, self._work)
        except TooMuchWork:
            return True

    def _compiled(self, pattern: str) -> Regex | None:
        self._characters_left -= len(pattern)
        try:
            return Regex(pattern) if self._characters_left >= 0 else None
        except BadPattern:
            return None


def fill_in(content: JsonObject, schema: JsonObject) -> tuple[JsonObject, list[Problem]]:
    """Return the content with defaults for missing fields, and its problems.

    An unchanged default comes from the backend and is not checked.
    """
    fields = schema.get("properties")
    fields = {name: rule for name, rule in fields.items() if isinstance(rule, dict)} if isinstance(fields, dict) else {}
    filled = {name: rule["default"] for name, rule in fields.items() if "default" in rule} | content
    required = schema.get("required")
    required = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    missing = (Problem(name, "required", "is required") for name in required if name not in filled)
    found = chain(missing, _field_problems(content, fields, takes_others=bool(schema.get("additionalProperties"))))
    problems = list(islice(found, MOST_PROBLEMS))
    return filled, problems + ([_MORE] if len(problems) == MOST_PROBLEMS else [])


def _field_problems(content: JsonObject, fields: JsonObject, *, takes_others: bool) -> Iterator[Problem]:
    check, unknown = _Check(), 0
    for name, value in content.items():
        if name in fields:
            yield from (Problem(name, *mismatch) for mismatch in _mismatches(value, fields[name], check))
        elif not takes_others:
            unknown += 1
    if unknown:  # their names are part of the answer, which is never shown again
        begin = (
            "one entry of the content is not a field"
            if unknown == 1
            else f"{unknown} entries of the content are not fields"
        )
        yield Problem(None, "additionalProperties", f"{begin} of the form; it has {_listed(fields) or 'none'}")


def _mismatches(value: Any, rule: JsonObject, check: _Check) -> Iterator[_Mismatch]:
    if rule.get("type") != "array" and (choices := check.choices(rule)) is not None:
        listed, plain = choices
        if isinstance(value, list | dict) or value not in plain:  # comparing large values takes very long
            yield "enum", f"must be one of {_listed(listed)}"
        return
    match rule.get("type"):
        case "string":
            yield from _string_mismatches(value, rule, check)
        case "number" | "integer" as kind:
            yield from _number_mismatches(value, rule, whole=kind == "integer")
        case "boolean":
            if not isinstance(value, bool):
                yield "type", "must be true or false"
        case "array":
            yield from _array_mismatches(value, rule, check)


def _string_mismatches(value: Any, rule: JsonObject, check: _Check) -> Iterator[_Mismatch]:
    if not isinstance(value, str):
        yield "type", "must be text"
        return
    if len(value) < _number(rule, "minLength", 0):
        yield "minLength", f"must have at least {rule['minLength']} characters"
    if len(value) > _number(rule, "maxLength", float("inf")):
        yield "maxLength", f"must have at most {rule['maxLength']} characters"
    if isinstance(pattern := rule.get("pattern"), str) and not check.matches(pattern, value):
        yield "pattern", f"must match {pattern}"
    if (kind := rule.get("format")) and not _has_format(value, kind):
        yield "format", f"must be of the format {kind}"


def _number_mismatches(value: Any, rule: JsonObject, *, whole: bool) -> Iterator[_Mismatch]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (whole and isinstance(value, float) and not value.is_integer()):
        yield "type", "must be a whole number" if whole else "must be a number"
        return
    if value < _number(rule, "minimum", float("-inf")):
        yield "minimum", f"must be at least {rule['minimum']}"
    if value > _number(rule, "maximum", float("inf")):
        yield "maximum", f"must be at most {rule['maximum']}"


def _array_mismatches(value: Any, rule: JsonObject, check: _Check) -> Iterator[_Mismatch]:
    if not isinstance(value, list):
        yield "type", "must be a list"
        return
    if len(value) < _number(rule, "minItems", 0):
        yield "minItems", f"must have at least {rule['minItems']} entries"
    if len(value) > _number(rule, "maxItems", float("inf")):
        yield "maxItems", f"must have at most {rule['maxItems']} entries"
    items = rule.get("items")
    items = items if isinstance(items, dict) else {}
    for index, item in enumerate(value):
        for code, words in _mismatches(item, items, check):
            yield code, f"entry {index} {words}"


def _choices(rule: JsonObject) -> list[Any] | None:
    """Return the allowed values, from any of the notations that a form can use."""
    if isinstance(listed := rule.get("enum"), list):
        return listed
    for key in ("oneOf", "anyOf"):
        options = rule.get(key)
        if isinstance(options, list) and all(isinstance(option, dict) and "const" in option for option in options):
            return [option["const"] for option in options]
    return None


def _number(rule: JsonObject, key: str, default: float) -> float:
    value = rule.get(key)
    return value if isinstance(value, int | float) else default


def _listed(names: Iterable[Any]) -> str:
    found = islice(names, MOST_NAMES + 1)
    shown = ["…" if isinstance(name, list | dict) else str(name)[:100] for name in found]  # containers may be huge
    return ", ".join(shown[:MOST_NAMES]) + (" and more" if len(shown) > MOST_NAMES else "")


def _has_format(value: str, kind: Any) -> bool:
    match kind:
        case "email":
            return _EMAIL.fullmatch(value) is not None
        case "uri":
            return _URI.fullmatch(value) is not None
        case "date":
            return _DATE.fullmatch(value) is not None and _parses(date, value)
        case "date-time":
            return _DATE_TIME.fullmatch(value) is not None and _parses(datetime, value.upper())
    return True


def _parses(kind: type[date], value: str) -> bool:
    try:
        kind.fromisoformat(value)
    except ValueError:
        return False
    return True
