import time
from contextlib import suppress

import pytest

from emceepee.errors import InvalidArguments
from emceepee.tools.excerpts.patterns import LONGEST_PATTERN, compile_pattern
from support.figures import record_figure


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (".*", "", True),
        ("ead", "read_file", True),
        ("^read_", "read_file", True),
        ("^file", "read_file", False),
        ("read|write", "overwrite", True),
        ("(?i)READ", "read", True),
        (r"\d{2}", "a12", True),
        ("ä", "bär", True),
        ("", "anything", True),
    ],
)
def test_a_tool_pattern_matches_anywhere_in_the_text(pattern: str, text: str, found: bool) -> None:
    assert compile_pattern("tool", pattern).search(text) is found


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("a(b", 1),
        ("[z-a]", 1),
        ("*x", 0),
        ("ab)c", 2),
        ("a(?=b)", 1),
        (r"(a)\1", 3),
        ("x{2,1}", 1),
        ("(a)[(](b\\(", 6),
        ("\\", 0),
        ("(", 0),
    ],
)
def test_an_invalid_pattern_is_rejected_with_its_argument_and_position(pattern: str, position: int) -> None:
    with pytest.raises(InvalidArguments, match="tool is not a usable regular expression") as caught:
        compile_pattern("tool", pattern)
    assert caught.value.details == {"argument": "tool", "position": position}
    assert f"at position {position}" in str(caught.value)


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_with_catastrophic_backtracking_is_answered_at_once(pattern: str) -> None:
    text = "a" * 100_000 + "!"
    assert compile_pattern("tool", pattern).search(text) is False


@pytest.mark.parametrize(
    "pattern", ["((a{1,100}){1,100}){1,100}", "(" * 450 + ")" * 450 + "{1,500}" * 2, "x" * (LONGEST_PATTERN + 1)]
)
def test_a_pattern_that_compiles_too_large_is_rejected(pattern: str) -> None:
    with pytest.raises(InvalidArguments):
        compile_pattern("server", pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(a{0,30}){0,30}" * 9 + "b", "a" * 1000), ("(((a{0,30}){0,30}){0,1})*b", "a" * 10_000)],
)
def test_a_pattern_that_is_too_slow_for_many_names_is_rejected(pattern: str, text: str) -> None:
    compiled = compile_pattern("tool", pattern)
    with pytest.raises(InvalidArguments, match="too large for so many names"):
        list(map(compiled.search, [text] * 100))


def test_an_ordinary_pattern_can_search_the_maximum_number_of_names() -> None:
    compiled = compile_pattern("tool", "^(read|write|list)_.*file")
    assert sum(compiled.search(f"read_a_{number}_file") for number in range(10_000)) == 10_000


@pytest.mark.parametrize("tail", ["", "(?=x)", "("])
def test_a_costly_pattern_never_reaches_the_compiler_of_python(tail: str) -> None:
    """The compiler of Python takes seconds for this pattern."""
    began = time.process_time()
    with suppress(InvalidArguments):
        compile_pattern("server", "(?i)" + "[\x00-\uffff]" * 199 + tail)
    took = time.process_time() - began
    record_figure(f"a pattern of 199 wide classes and {tail!r} compiled or refused in {took * 1000:.1f} ms")
    assert took < 1


def test_pattern_compilation_writes_nothing_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    for pattern in ("(a|b)" * 199, "(", "(a{0,30}){0,30}" * 9, "((a{1,100}){1,100}){1,100}"):
        with suppress(InvalidArguments):
            compile_pattern("tool", pattern).search("ab" * 100)
    assert capfd.readouterr() == ("", "")
