import pytest

from emceepee.errors import InvalidArguments
from emceepee.tools.patterns import LONGEST_PATTERN, compile_pattern


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
def test_a_pattern_is_searched_anywhere_in_the_text(pattern: str, text: str, found: bool) -> None:
    assert (compile_pattern("tool", pattern).search(text) is not None) is found


@pytest.mark.parametrize(
    ("pattern", "position"),
    [("a(b", 1), ("[z-a]", 1), ("*x", 0), ("ab)c", 2), ("a(?=b)", 1), (r"(a)\1", 3), ("x{2,1}", 2), ("(", 0)],
)
def test_a_bad_pattern_is_refused_with_the_argument_and_the_position(pattern: str, position: int) -> None:
    with pytest.raises(InvalidArguments, match="tool is not a usable regular expression") as caught:
        compile_pattern("tool", pattern)
    assert caught.value.details == {"argument": "tool", "position": position}
    assert f"at position {position}" in str(caught.value)


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*$", "(.*)*x", "^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_made_to_explode_answers_at_once(pattern: str) -> None:
    text = "a" * 100_000 + "!"
    assert compile_pattern("tool", pattern).search(text) is None


@pytest.mark.parametrize(
    "pattern", ["((a{1,100}){1,100}){1,100}", "(" * 450 + ")" * 450 + "{1,500}" * 2, "x" * (LONGEST_PATTERN + 1)]
)
def test_a_pattern_too_large_to_hold_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidArguments):
        compile_pattern("server", pattern)
