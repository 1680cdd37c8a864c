"""Rules of plain English, and a search for the expressions that break them.

A rule is a pattern for raw text, of words that occur in prose and seldom in code. The search first looks for a rule's
anchors, which are plain strings, and runs the pattern only near those: the whole repository takes about a second.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from support.documentation import ROOT

ENDINGS: Final = frozenset({".py", ".md", ".js", ".mjs", ".ts", ".html"})
FOLDERS: Final = ("src", "docs", "tests", "bench", "examples")
SKIPPED: Final = frozenset({"node_modules", "__pycache__", "output"})
# The rules and their samples break every rule. The twenty sentences are quotes: names of tests as they were drawn.
EXEMPT: Final = frozenset({"tests/support/prose.py", "tests/docs/test_prose.py", "tests/docs/behaviors_to_find.md"})

_GAP: Final = r"(?:\s|#|//|\*(?!/))+"  # between two words, perhaps of two lines of a comment
_REACH: Final = 80  # characters before and after an anchor that a match may begin and end in
_RELEASED: Final = re.compile(r"(?=^## \[[\d.]+\] - \d{4}-\d\d-\d\d$)", re.MULTILINE)
_TEST_NAME: Final = re.compile(r"def test_\w+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An expression that a native speaker would correct, and what to write instead.

    A space in `pattern` also matches a line break. Every match contains one of the `anchors`. Text is searched in lower
    case, except by a rule about the first word of a sentence, whose capital letter shows its place.
    """

    pattern: str
    anchors: tuple[str, ...]
    instead: str
    breaks: str  # a sample with one finding
    keeps: str = "Nothing to correct."  # a similar sample without one
    first: bool = False
    compiled: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", re.compile(self.pattern.replace(" ", _GAP)))

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Find the expression in a text; each match once."""
        end = 0
        for at in sorted({found.start() for each in self.anchors for found in re.finditer(re.escape(each), text)}):
            for found in self.compiled.finditer(text, max(end, at - _REACH), at + 3 * _REACH):
                if found.start() <= at < found.end():
                    end = found.end()
                    if not _is_quoted(text, found):
                        yield found


def _is_quoted(text: str, found: re.Match[str]) -> bool:
    """Return whether the match is a whole string of the program: a name or a value, not prose."""
    start, end = found.span()
    quote = text[end : end + 1]
    return quote in ('"', "'") and text[start - 1 : start] == quote and text[start - 3 : start] != 3 * quote


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """One expression that breaks a rule, and its place."""

    path: str
    line: int
    words: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: “{self.words}”: write {self.instead}"


def _word(pattern: str, anchors: str, instead: str, breaks: str, keeps: str = "Nothing to correct.") -> Rule:
    return Rule(
        pattern=rf"\b(?:{pattern})\b", anchors=tuple(anchors.split()), instead=instead, breaks=breaks, keeps=keeps
    )


def _first(pattern: str, anchors: str, instead: str, breaks: str, keeps: str = "Nothing to correct.") -> Rule:
    """Return a rule about the first words of a sentence."""
    return Rule(
        pattern=pattern, anchors=tuple(anchors.split()), instead=instead, breaks=breaks, keeps=keeps, first=True
    )


_NAMED: Final = r"(?:a|an|the|its|each|every|any|one)"
_BE: Final = r"(?:is|are|was|were|be|been|being)"
_OPENING: Final = r"(?:Unless|So that|What|Whose|Those|The same|Because|Since)\b"

RULES: Final = (
    _word("mend(?:s|ed|ing)?", "mend", "fix", "A reconnect mends it.", "The amended file."),
    _word("anew", "anew", "again, or from scratch", "It is sent anew."),
    _word("whoever|whomever|whosever", "whoever whomever whosever", "a noun: caller, client", "Whoever waits gets it."),
    _word("whatever", "whatever", "a noun, or “any”", "It works whatever the client.", "Nothing else."),
    _word("those (?:that|which|who|whose|whom)", "those", "a noun", "Close those that wait."),
    _word("the ones? (?:who|that|which|whose)", "one", "a noun", "Keep the one that answered."),
    _word("that there (?:is|are) (?:not|none|no)", "there", "missing, unknown", "A tool that there is not."),
    _word(r"there (?:is|are) not(?=[.,;:)])", "there", "missing, unknown", "A tool there is not."),
    _word("manners", "manners", "options", "The manners of a notice."),
    _word("right of way", "right", "priority", "The writer has the right of way."),
    _word("ways? out", "way", "exit, egress", "The way out is a proxy."),
    _word("onlookers?", "onlooker", "observer", "An onlooker sees it."),
    _word("doorkeepers?", "doorkeeper", "gatekeeper", "Ask the doorkeeper."),
    _word(r"too(?=[.;:,)!?]|\"\"\"|$)", "too", "nothing, or move it", "Files are closed, too.", "It is too large."),
    _word(
        r"also(?=[.;)!?]|\"\"\"|$)", "also", "nothing, or move it", "Files are closed also.", "It also closes files."
    ),
    _word("in the middle of", "middle", "during", "It dies in the middle of a call."),
    _word(
        r"(?<!encrypted\s)(?<!encryption\s)at rest",
        "rest",
        "stored",
        "A session at rest.",
        "Tokens, encrypted at rest.",
    ),
    _word("meanwhile", "meanwhile", "during that time, or the event that ends it", "Meanwhile, it waits."),
    _word("a moment", "moment", "the measured time", "It takes a moment."),
    Rule(pattern="say(?:s|ing)? `-", anchors=("say",), instead="pass", breaks="For more, say `--verbose`."),
    _word(f"{_BE} told", "told", "is notified, receives", "The caller is told."),
    _word(
        f"tell(?:s|ing)? {_NAMED} (?:callers?|clients?|servers?|users?|models?|backends?)",
        "tell",
        "notify, return",
        "It tells the caller.",
    ),
    _word("(?:is|are|be|been) had|to be had", "had", "is available", "A token is to be had there."),
    _word(f"{_BE} looked at|looks? on", "look", "is checked, is read; watch", "The file is looked at."),
    _word("how things (?:are|stand|go|went)", "things", "the status", "See how things stand."),
    _word("for ever", "ever", "forever", "It waits for ever."),
    _word("so that (?:nobody|nothing|none|no one)", "that", "the hazard that is avoided", "So that nobody waits."),
    _word("gives? way|gave way|giving way", "way", "is evicted, yields", "The oldest gives way."),
    _word("(?:give|gives|gave|given|giving) up on", "up", "abandon", "It gives up on the server."),
    _word(
        "what it (?:holds|held|says|said|keeps|has|had|knows|knew|is about|tells)", "what", "a noun", "See what it has."
    ),
    _word("please", "please", "the imperative alone", "Please restart.", "A pleased user."),
    _word("simply", "simply", "nothing", "Simply restart."),
    _first(  # not in a heading of a page or a link to it
        r"(?<!##\x20)(?<!\A#\x20)(?<!\[)\bWhat (?:is|are|was|were|it|they)\b(?![^.|]{0,160}\?)",
        "What",
        "the noun itself",
        "What is stored expires.",
        "What is a session? ## What is sent [What is sent]",
    ),
    _first(r"\bThose of\b", "Those", "a noun", "Those of one connection."),
    _first(r"\bThe same(?:,| as| but| for| of)", "The", "the subject and the verb", "The same, but later."),
    _first(rf'"""{_OPENING}', '"""', "“Return …”, a verb or a noun", '"""Unless it is late."""'),
    _first(rf"/\*\*\s+(?:\*\s)?{_OPENING}", "/**", "“Return …”, a verb or a noun", "/** Unless it is late. */"),
    _first(
        rf"\b(?:Have|Let|Take|Give|Tell) {_NAMED}\b",
        "Have Let Take Give Tell",
        "the exact verb",
        "Have the server start.",
    ),
    Rule(pattern=r"[a-z]!(?=\s|[\"'`)]|$)", anchors=("!",), instead="a period", breaks="It works!", keeps="a != b"),
)


def current(text: str) -> str:
    """Return a text without the released sections of a changelog, which are history and stay as they were."""
    return _RELEASED.split(text, 1)[0]


def readable(text: str) -> str:
    """Return a text of the same length in which the names of tests are sentences."""
    return _TEST_NAME.sub(lambda found: found[0].replace("_", " "), text)


def findings(path: str, text: str, rules: Sequence[Rule] = RULES) -> list[Finding]:
    """Find the expressions in one text that break a rule, in the order of the text."""
    text = readable(text)
    lowered = text.lower()
    if len(lowered) != len(text):
        message = f"{path} has a letter whose lower case is longer"
        raise ValueError(message)
    return sorted(
        Finding(
            path=path,
            line=text.count("\n", 0, found.start()) + 1,
            words=re.sub(_GAP, " ", text[found.start() : found.end()]).strip(' "/'),
            instead=rule.instead,
        )
        for rule in rules
        for found in rule.matches(text if rule.first else lowered)
    )


def files() -> Iterator[Path]:
    """Return the files that people read: sources, tests and pages."""
    yield from sorted(ROOT.glob("*.md"))
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in ENDINGS and not SKIPPED & set(path.parts) and path.is_file():
                yield path
