"""The questions of a server, answered with prepared lines."""

from typing import Any

import pytest

from emceepee.cli.terminal import MOST_ASKED
from emceepee.cli.use.form_prompts import FormPrompts


class Person:
    """Types these lines and then ends the input. `read` is the text on the screen."""

    def __init__(self, *lines: str) -> None:
        self._lines, self.read = list(lines), ""

    async def line(self) -> str | None:
        return self._lines.pop(0) if self._lines else None

    def write(self, text: str) -> None:
        self.read += text

    @property
    def prompts(self) -> FormPrompts:
        return FormPrompts(self.line, self.write)


def form(**fields: Any) -> dict[str, Any]:
    return {"server": "one", "mode": "form", "message": "Well?", "requestedSchema": {"properties": fields}}


@pytest.mark.parametrize(
    ("field", "line", "expected"),
    [
        ({"type": "string"}, " two words ", " two words "),
        ({"type": "integer"}, "4", 4),
        ({"type": "number"}, "4.5", 4.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["First", "Second"]}, "second", "b"),
        ({"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}]}, "red", "#f00"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "a, b", ["a", "b"]),
    ],
)
async def test_a_typed_form_line_is_converted_to_its_field_type(
    field: dict[str, Any], line: str, expected: object
) -> None:
    answer = await Person(line, "y").prompts.elicit(form(field=field))
    assert answer == {"action": "accept", "content": {"field": expected}}


async def test_optional_form_fields_and_fields_with_defaults_may_be_left_empty() -> None:
    person = Person("", "", "")
    fields = {"note": {"type": "string"}, "size": {"type": "integer", "default": 3}}
    assert await person.prompts.elicit(form(**fields)) == {"action": "accept", "content": {}}
    assert "note (may be left empty): " in person.read
    assert "size (nothing means 3): " in person.read


async def test_an_invalid_form_line_is_asked_again_with_the_reason() -> None:
    person = Person("many", "99", "4", "y")
    field = {"type": "integer", "maximum": 12}
    assert (await person.prompts.elicit(form(count=field)))["content"] == {"count": 4}
    assert "say a number" in person.read
    assert "must be at most 12" in person.read


async def test_end_of_input_cancels_a_form_and_no_declines_it() -> None:
    assert await Person().prompts.elicit(form(name={"type": "string"})) == {"action": "cancel"}
    assert await Person("x", "n").prompts.elicit(form(name={"type": "string"})) == {"action": "decline"}


async def test_any_text_other_than_yes_or_no_repeats_the_question() -> None:
    person = Person("x", "sure", "ja", "YES")
    answer = await person.prompts.elicit(form(name={"type": "string"}))
    assert answer == {"action": "accept", "content": {"name": "x"}}
    assert person.read.count("Send this? [Y/n] ") == 3
    assert person.read.count("Type y or n.") == 2
    link = {"server": "one", "mode": "url", "message": "Log in", "url": "https://x.test/"}
    assert await Person("done", "y").prompts.elicit(link) == {"action": "accept"}


async def test_a_form_is_cancelled_after_too_many_answers_other_than_yes_or_no() -> None:
    person = Person("x", *["what?"] * 99)
    assert await person.prompts.elicit(form(name={"type": "string"})) == {"action": "cancel"}
    assert person.read.count("Send this?") == MOST_ASKED
    link = {"server": "one", "mode": "url", "message": "Log in", "url": "https://x.test/"}
    assert await Person(*["what?"] * 99).prompts.elicit(link) == {"action": "cancel"}
    assert await Person("what?").prompts.elicit(link) == {"action": "cancel"}
    assert await Person("n").prompts.elicit(link) == {"action": "decline"}


async def test_a_url_question_shows_its_link_and_sends_only_the_action() -> None:
    question = {"server": "one", "mode": "url", "message": "Log in", "url": "https://x.test/\x1b[2J"}
    person = Person("y")
    assert await person.prompts.elicit(question) == {"action": "accept"}
    assert "https://x.test/" in person.read
    assert "\x1b" not in person.read
    assert await Person("").prompts.elicit(question) == {"action": "decline"}
