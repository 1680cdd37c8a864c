"""Which lines of standard error are shown: those with the cause, at any position."""

import pytest

from emceepee.backends.process.stderr_lines import LINES_KEPT, LONGEST_LINE, StderrLines, stderr_excerpt


def written(*lines: str) -> StderrLines:
    made = StderrLines()
    for line in lines:
        made.append(line)
    return made


def test_a_short_stderr_is_shown_whole() -> None:
    assert written("one", "", "  ", "two").sentence() == "its stderr: one | two"


def test_an_empty_stderr_is_reported_as_empty() -> None:
    assert written("", " ").sentence() == "its stderr was empty"


def test_an_error_before_a_long_help_text_is_shown() -> None:
    lines = ["Starting", "Loading tools", "Error: An access token was not provided", "", "Usage:"]
    lines += [f"  --option-{number}  Sets it" for number in range(40)] + ["Run with --help"]
    shown = written(*lines).excerpt()
    assert shown[:4] == ["Starting", "Loading tools", "Error: An access token was not provided", "(35 lines left out)"]
    assert shown[-1] == "Run with --help"
    assert len(shown) == 11


def test_an_error_before_a_long_stack_trace_is_shown() -> None:
    trace = [f"    at load{number} (/srv/error.js:{number})" for number in range(60)]
    lines = ["/srv/index.js:10", "    throw new Error(why)", "    ^", "Error: STRIPE_SECRET_KEY is missing", *trace]
    shown = written(*lines, "Node.js v20.20.2").excerpt()
    assert "Error: STRIPE_SECRET_KEY is missing" in shown
    assert shown[-1] == "Node.js v20.20.2"


def test_stderr_lines_beyond_the_limit_are_counted_as_left_out() -> None:
    lines = [f"line {number}" for number in range(LINES_KEPT + 100)]
    shown = written(*lines).excerpt()
    assert shown == [f"({LINES_KEPT + 90} lines left out)", *lines[-10:]]


def test_a_long_stderr_line_is_shortened() -> None:
    (shown,) = written("x" * 10_000).excerpt()
    assert len(shown) == LONGEST_LINE


@pytest.mark.parametrize("count", range(13))
def test_the_stderr_excerpt_accounts_for_every_line(count: int) -> None:
    lines = [f"line {number}" for number in range(count)]
    shown = stderr_excerpt(lines, most=6)
    left_out = sum(int(line[1:].split()[0]) for line in shown if line.startswith("("))
    assert left_out + sum(not line.startswith("(") for line in shown) == count
