"""Forms described in words."""

import json
import time
from typing import Any

import pytest

from emceepee.demo.tools import BOOKING_FORM
from emceepee.tools.replies.form_text import form_text, json_text
from emceepee.wire.json_types import JsonObject
from support.figures import record_figure


def form(*required: str, **fields: Any) -> JsonObject:
    return {"type": "object", "properties": fields, "required": list(required)}


def test_a_form_is_described_with_one_line_per_field() -> None:
    words = form_text(BOOKING_FORM, 2048)
    assert words.splitlines() == [
        "Fields:",
        '- guests: whole number, at least 1, at most 12, required. "Guests"',
        '- time: one of "18:00", "19:30", "21:00", required. "Time"',
        '- window: true or false, default false. "By the window?"',
    ]
    record_figure(f"a form of three fields: {len(words)} characters in words, {len(json.dumps(BOOKING_FORM))} as JSON")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"type": "string"}, "text"),
        ({"type": "string", "format": "email", "maxLength": 40}, 'text, at most 40 characters, format "email"'),
        ({"type": "string", "pattern": "^a+$"}, 'text, pattern "^a+$"'),
        ({"type": "number", "minimum": 0.5}, "number, at least 0.5"),
        ({"type": "boolean", "default": True}, "true or false, default true"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "b"]}, 'one of "a" ("A"), "b"'),
        ({"oneOf": [{"const": "r", "title": "Red"}]}, 'one of "r" ("Red")'),
        ({"type": "array", "items": {"enum": ["x"]}, "minItems": 1}, 'list, each one of "x", at least 1 entries'),
        ({"type": "array", "items": {"anyOf": [{"const": 1}]}}, "list, each one of 1"),
        ({"type": "array"}, "list"),
        ({"type": "object", "default": {"a": 1}}, "any value, default {…}"),
        ({"type": ["string", "null"]}, "any value"),
        ({"type": "string", "title": "T", "description": "D"}, 'text. "T" "D"'),
        ({"minimum": True}, "any value, at least true"),
        ({"default": 10**5000}, "any value, default a very large number"),
        ({"default": [1]}, "any value, default […]"),
        ({}, "any value"),
    ],
)
def test_a_form_field_is_described_with_its_rules(rule: JsonObject, words: str) -> None:
    assert form_text(form(f=rule), 2048) == f"Fields:\n- f: {words}"


def test_a_server_cannot_add_lines_to_a_form_description() -> None:
    words = form_text(form(**{"a\n- evil": {"type": "string", "title": "x\ny"}}), 2048)
    assert words == 'Fields:\n- "a\\n- evil": text. "x\\ny"'


def test_form_fields_that_do_not_fit_are_counted() -> None:
    fields = {f"field{number}": {"type": "string", "description": "d" * 150} for number in range(50)}
    words = form_text(form(**fields), 2048)
    shown = words.splitlines()
    assert len(words) < 2200
    assert shown[-1] == f"- {50 - (len(shown) - 2)} more: get_elicitations shows the whole form"
    assert "\\" not in words


@pytest.mark.parametrize(
    "given",
    [
        form(f={"type": "string", "description": "d" * 1_000_000}),
        form(f={"enum": ["c" * 10_000] * 10_000}),
        form(**{"n" * 1_000_000: {"type": "string"}}),
    ],
)
def test_a_hostile_form_description_stays_within_its_limit(given: JsonObject) -> None:
    assert len(form_text(given, 8192)) < 8400


def test_many_required_form_names_are_processed_quickly() -> None:
    fields = {f"f{number}": {"type": "string"} for number in range(1000)}
    began = time.process_time()
    form_text(form(*(f"r{number}" for number in range(900_000)), **fields), 64_000)
    took = time.process_time() - began
    record_figure(f"a form with 900,000 required names: {took * 1000:.0f} ms")
    assert took < 0.25 * 5


@pytest.mark.parametrize("given", [None, [], "form", {}, {"properties": []}, {"properties": {"f": 1}}])
def test_an_invalid_form_refers_to_get_elicitations(given: Any) -> None:
    assert form_text(given, 2048) == "Its form is no list of fields: get_elicitations shows the whole form"


def test_an_empty_form_is_described_as_such() -> None:
    assert form_text(form(), 2048) == "The form has no fields."


def test_a_long_json_value_is_truncated_with_a_reference_to_its_tool() -> None:
    assert json_text({"a": '"'}, 100, "get_elicitations") == '{"a":"\\""}'
    cut = json_text({"a": "b" * 1000}, 50, "get_sampling_requests")
    assert cut.startswith('{"a":"bbb')
    assert cut.endswith("… (cut: 1008 characters; get_sampling_requests shows it whole)")
