"""Pages, error messages, help, docstrings, comments, and names of tests are plain American English."""

import pytest

from support.documentation import ROOT
from support.prose import EXEMPT, RULES, Finding, Rule, current, files, findings

# Expressions that are right where they stand: (file, line or part of it) and the reason.
ALLOWED: dict[tuple[str, str], str] = {
    ("bench/backend/catalog.py", "Please pay within"): "the text of an invoice",
    ("src/emceepee/search/words.py", "please help want"): "a list of words that a search ignores",
    ("src/emceepee/telemetry/otel/request_tracer.py", "about | also)"): "the name of a variable",
}


def is_allowed(finding: Finding, line: str) -> bool:
    return any(finding.path == path and part in line for path, part in ALLOWED)


@pytest.fixture(scope="module")
def found() -> list[tuple[Finding, str]]:
    """Every finding in the repository, with its line."""
    result = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if name not in EXEMPT:
            text = current(path.read_text("utf-8"))
            lines = text.splitlines()
            result += [(each, lines[each.line - 1]) for each in findings(name, text)]
    return result


def test_the_prose_of_the_repository_is_plain_english(found: list[tuple[Finding, str]]) -> None:
    wrong = [str(each) for each, line in found if not is_allowed(each, line)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_exception_of_the_prose_check_is_needed(found: list[tuple[Finding, str]]) -> None:
    unused = [
        (path, part) for path, part in ALLOWED if not any(each.path == path and part in line for each, line in found)
    ]
    assert unused == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.pattern)
def test_a_prose_rule_finds_its_expression_and_nothing_else(rule: Rule) -> None:
    assert len(findings("page.md", rule.breaks, [rule])) == 1
    assert findings("page.md", rule.keeps) == []


def test_a_prose_finding_names_the_file_the_line_the_words_and_the_replacement() -> None:
    text = "# One line.\n\n# A reconnect\n# mends it.\n"
    assert [str(each) for each in findings("src/link.py", text)] == ["src/link.py:4: “mends”: write fix"]


def test_the_prose_check_finds_an_expression_across_two_lines_of_a_comment() -> None:
    for text in (
        "# Close those\n    # that wait.",
        "// Close those\n// that wait.",
        "/** Close those\n * that wait. */",
    ):
        assert [each.words for each in findings("a", text)] == ["those that"]


def test_the_prose_check_reads_the_name_of_a_test_as_a_sentence() -> None:
    assert [each.words for each in findings("a", "def test_whoever_waits_is_told() -> None:")] == ["is told", "whoever"]
    assert findings("a", "def tell_whoever_waits() -> None:") == []


def test_the_prose_check_skips_released_sections_of_the_changelog() -> None:
    assert current("# Changelog\n\n## [2.0.0] - unreleased\n\nNew.\n\n## [1.0.0] - 2026-11-16\n\nOld.\n").endswith(
        "New.\n\n"
    )
    assert current("# Another page\n\nText.\n") == "# Another page\n\nText.\n"


def test_the_prose_check_skips_a_name_in_quotes() -> None:
    assert findings("a.py", 'call("meanwhile")') == []
    assert [each.words for each in findings("a.py", '"""Meanwhile."""')] == ["Meanwhile"]


def test_the_prose_check_finds_two_adjacent_expressions_once_each() -> None:
    text = "Those that wait, and those that wait too."
    assert [each.words for each in findings("a", text)] == ["Those that", "those that", "too"]
