"""Typed or pasted text, split into lines."""

import pytest

from emceepee.cli.setup.pasted_lines import LONGEST_LINE, LineAssembler


def test_pasted_lines_are_split_from_any_pieces_and_empty_ones_skipped() -> None:
    assembler = LineAssembler()
    assert assembler.feed(b"\n\nhttp://a") == []
    assert assembler.feed(b"/b\r\n  http://c \nrest") == ["http://a/b", "http://c"]
    assert assembler.end() == ["rest"]
    assert assembler.has_ended


@pytest.mark.parametrize(
    ("keys", "line"), [(b"axb\x7f\x7fb\n", "ab"), (b"wrong\x15right\n", "right"), (b"\x08a\n", "a")]
)
def test_a_typed_line_can_be_edited_at_a_terminal(keys: bytes, line: str) -> None:
    assert LineAssembler(is_terminal=True).feed(keys) == [line]


def test_erased_characters_disappear_from_the_screen() -> None:
    assembler = LineAssembler(is_terminal=True)
    assembler.feed(b"abc\x15")
    assert bytes(assembler.echo) == b"\b \b" * 3


def test_control_d_ends_input_only_at_a_terminal() -> None:
    at_terminal, from_file = LineAssembler(is_terminal=True), LineAssembler()
    assert at_terminal.feed(b"last\x04") == ["last"]
    from_file.feed(b"x\x04")
    assert (at_terminal.has_ended, from_file.has_ended) == (True, False)


def test_an_endless_pasted_line_is_truncated() -> None:
    assembler = LineAssembler()
    assembler.feed(b"x" * (2 * LONGEST_LINE))
    (line,) = assembler.end()
    assert len(line) == LONGEST_LINE
