"""The output of commands at a terminal."""

import io

import pytest

from emceepee.cli.terminal import MOST_ASKED, Paint, agrees, complain, rendered, say


def answers(monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [(["y"], True), (["Yes "], True), (["n"], False), (["no"], False), ([""], False), ([], False), (["ok", "y"], True)],
)
def test_only_yes_confirms_and_only_no_or_nothing_declines(
    lines: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, *lines)
    assert agrees("Well?") is expected


def test_a_confirmation_is_repeated_a_limited_number_of_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, *["maybe"] * 99)
    assert not agrees("Well?")
    assert capsys.readouterr().out.count("Well? [y/N] ") == MOST_ASKED


HOSTILE = "a\x1b[2Jb"


def test_only_our_own_color_codes_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    paint = Paint(is_on=True)
    say("  ", paint.good(HOSTILE), f": {HOSTILE}")
    assert capsys.readouterr().out == "  \x1b[32ma\ufffd[2Jb\x1b[0m: a\ufffd[2Jb\n"


def test_color_codes_nested_in_other_text_are_escaped() -> None:
    assert rendered(f"{Paint(is_on=True).good('ok')}?") == "\ufffd[32mok\ufffd[0m?"


def test_error_messages_are_escaped_for_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    complain(ValueError(HOSTILE))
    assert capsys.readouterr().err == "emceepee: a\ufffd[2Jb\n"


def test_a_colored_diff_contains_no_other_control_codes() -> None:
    assert Paint(is_on=True).diff(f"+{HOSTILE}\n") == "\x1b[32m+a\ufffd[2Jb\x1b[0m\n"
