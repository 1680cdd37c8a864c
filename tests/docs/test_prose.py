"""Pages, error messages, help, docstrings, comments, and names of tests are plain American English."""

import pytest

from support.documentation import ROOT
from support.prose import EXEMPT, RULES, Finding, Rule, files, findings

# Expressions that are right where they stand: (file, line or part of it) and the reason.
ALLOWED: dict[tuple[str, str], str] = {
    ("bench/backend/catalog.py", "Please pay within"): "the text of an invoice",
    ("src/emceepee/search/words.py", "please help want"): "a list of words that a search ignores",
    ("src/emceepee/telemetry/otel/request_tracer.py", "about | also)"): "the name of a variable",
}
# Folders and files whose sentences nobody has revised yet.
NOT_YET: tuple[str, ...] = (
    "CHANGELOG.md",
    "README.md",
    "SECURITY.md",
    "bench/__main__.py",
    "bench/backend/",
    "bench/contestants.py",
    "bench/eval/",
    "bench/load/",
    "bench/measure/",
    "bench/noise.py",
    "bench/processes.py",
    "bench/redis.py",
    "bench/report.py",
    "bench/simulation/",
    "bench/targets.py",
    "bench/work.py",
    "docs/benchmarks.md",
    "docs/decisions/",
    "docs/explanation/",
    "docs/glossary.md",
    "docs/index.md",
    "docs/site_hooks.py",
    "docs/tutorial.md",
    "examples/conversation.py",
    "examples/serve.py",
    "tests/clients/",
    "tests/conformance/",
    "tests/conftest.py",
    "tests/console/",
    "tests/contract/",
    "tests/docs/",
    "tests/interaction/",
    "tests/package/",
    "tests/page/",
    "tests/process/",
    "tests/soak/",
    "tests/support/",
    "tests/unit/",
)


def is_allowed(finding: Finding, line: str) -> bool:
    return any(finding.path == path and part in line for path, part in ALLOWED)


@pytest.fixture(scope="module")
def found() -> list[tuple[Finding, str]]:
    """Every finding in the repository, with its line."""
    result = []
    for path in files():
        name = path.relative_to(ROOT).as_posix()
        if name not in EXEMPT:
            text = path.read_text("utf-8")
            lines = text.splitlines()
            result += [(each, lines[each.line - 1]) for each in findings(name, text)]
    return result


def test_prose_is_plain_english(found: list[tuple[Finding, str]]) -> None:
    wrong = [str(each) for each, line in found if not each.path.startswith(NOT_YET) and not is_allowed(each, line)]
    assert not wrong, "\n" + "\n".join(wrong)


def test_every_exception_is_needed(found: list[tuple[Finding, str]]) -> None:
    unused = [
        (path, part) for path, part in ALLOWED if not any(each.path == path and part in line for each, line in found)
    ]
    assert unused == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.pattern)
def test_a_rule_finds_the_expression_that_it_is_about_and_nothing_else(rule: Rule) -> None:
    assert len(findings("page.md", rule.breaks, [rule])) == 1
    assert findings("page.md", rule.keeps) == []


def test_a_finding_names_the_file_the_line_the_words_and_the_replacement() -> None:
    text = "# One line.\n\n# A reconnect\n# mends it.\n"
    assert [str(each) for each in findings("src/link.py", text)] == ["src/link.py:4: “mends”: write fix"]


def test_an_expression_on_two_lines_of_a_comment_is_found() -> None:
    for text in (
        "# Close those\n    # that wait.",
        "// Close those\n// that wait.",
        "/** Close those\n * that wait. */",
    ):
        assert [each.words for each in findings("a", text)] == ["those that"]


def test_the_name_of_a_test_is_read_as_a_sentence() -> None:
    assert [each.words for each in findings("a", "def test_whoever_waits_is_told() -> None:")] == ["is told", "whoever"]
    assert findings("a", "def tell_whoever_waits() -> None:") == []


def test_two_expressions_near_each_other_are_both_found_and_each_once() -> None:
    text = "Those that wait, and those that wait too."
    assert [each.words for each in findings("a", text)] == ["Those that", "those that", "too"]
