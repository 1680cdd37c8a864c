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
def test_only_yes_agrees_and_only_no_or_nothing_declines(
    lines: list[str], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers(monkeypatch, *lines)
    assert agrees("Well?") is expected


def test_the_question_is_asked_again_until_it_is_asked_often_enough(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, *["maybe"] * 99)
    assert not agrees("Well?")
    assert capsys.readouterr().out.count("Well? [y/N] ") == MOST_ASKED


HOSTILE = "a\x1b[2Jb"


def test_only_our_own_colors_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    paint = Paint(is_on=True)
    say("  ", paint.good(HOSTILE), f": {HOSTILE}")
    assert capsys.readouterr().out == "  \x1b[32ma\ufffd[2Jb\x1b[0m: a\ufffd[2Jb\n"


def test_colors_within_other_text_are_lost_rather_than_trusted() -> None:
    assert rendered(f"{Paint(is_on=True).good('ok')}?") == "\ufffd[32mok\ufffd[0m?"


def test_complaints_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    complain(ValueError(HOSTILE))
    assert capsys.readouterr().err == "emceepee: a\ufffd[2Jb\n"


def test_a_diff_has_colors_and_no_other_orders() -> None:
    assert Paint(is_on=True).diff(f"+{HOSTILE}\n") == "\x1b[32m+a\ufffd[2Jb\x1b[0m\n"
