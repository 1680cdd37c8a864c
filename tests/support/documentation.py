"""The documentation as data: its pages, their links, headings and code blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_COMMAND = re.compile(r"`(emceepee(?:-http)?(?:\s[^`]*)?)`")
_HEADING = re.compile(r"^#+ +(?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced code block. In "json add_server" the language is json and the label add_server."""

    page: str
    language: str
    label: str
    body: str


@dataclass(frozen=True, slots=True)
class Page:
    """One Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        return self.path.read_text("utf-8")

    def links(self) -> list[str]:
        return [found["target"] for found in _LINK.finditer(_FENCE.sub("", self.text))]

    def anchors(self) -> set[str]:
        """The headings, as GitHub writes them in an address."""
        titles = [found["title"] for found in _HEADING.finditer(_FENCE.sub("", self.text))]
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    def commands(self) -> list[str]:
        """Return the commands of emceepee in the text outside of code blocks."""
        return [" ".join(found[1].split()) for found in _COMMAND.finditer(_FENCE.sub("", self.text))]

    def blocks(self) -> Iterator[Block]:
        for found in _FENCE.finditer(self.text):
            language, _, label = found["info"].strip().partition(" ")
            yield Block(page=self.name, language=language, label=label, body=found["body"])


def pages() -> list[Page]:
    """Every page of the repository, the root's and those under docs."""
    return [Page(path) for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])]


def blocks(language: str) -> list[Block]:
    return [block for page in pages() for block in page.blocks() if block.language == language]
