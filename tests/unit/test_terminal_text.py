"""Untrusted text before a terminal shows it."""

import json

import pytest

from emceepee.terminal_text import printable, printable_json

OBEYED = [
    *("\x1b[2J", "\r", "\x07", "\x08", "\x7f", "\x9b2J", "\x85", "\u2028"),
    *("\u202e", "\u2066", "\u2069", "\u061c", "\u200b", "\u2060", "\ufeff", "\U000e0041", "\ud800"),
]


@pytest.mark.parametrize("order", OBEYED, ids=ascii)
def test_terminal_control_and_invisible_characters_are_replaced(order: str) -> None:
    assert printable(f"a{order}b") == f"a\ufffd{order[1:]}b"


@pytest.mark.parametrize("order", OBEYED, ids=ascii)
def test_json_for_a_terminal_has_the_same_value_without_control_characters(order: str) -> None:
    value = {f"key {order}": [f"a{order}b"]}
    text = printable_json(value)
    assert json.loads(text) == value
    assert order[0] not in text
    assert "\\" + "u" in text or "\\r" in text or "\\b" in text


PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"


@pytest.mark.parametrize("text", ["two\n\tlines", "Grüße", "日本語", "שלום", "👩\u200d👧", PERSIAN, "→ ✓ …", ""])
def test_ordinary_text_in_any_language_is_printed_unchanged(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize("letter", "\u200c\u200d\u00ad")
def test_joiners_are_shown_where_a_script_does_not_need_them(letter: str) -> None:
    assert printable(f"git{letter}hub") == "git\ufffdhub"
