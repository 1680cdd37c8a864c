"""Makes untrusted text safe for a terminal: without control sequences, reordered characters, and hidden characters."""

import json
import re
from typing import Any

# C0 except tab and line feed, DEL, C1, line separators, bidirectional controls, invisible and tag characters, lone
# surrogates (which no stream can encode), and the joiners where scripts have no use for them: beside ASCII.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
    "|(?<![^\x00-\x7f])[\u00ad\u200c\u200d]|[\u00ad\u200c\u200d](?![^\x00-\x7f])"
)


def printable(text: str) -> str:
    """Return the text with a replacement character for each character that a terminal interprets or hides."""
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


def printable_json(value: Any, *, indent: int | None = None) -> str:
    """Return the value as JSON, with the same characters escaped so that a parser still reads them."""
    return printable_json_text(json.dumps(value, ensure_ascii=False, indent=indent))


def printable_json_text(text: str) -> str:
    """Return valid JSON, or a token of it, with these characters escaped."""
    return _UNSAFE.sub(_escaped, text)


def _escaped(found: "re.Match[str]") -> str:
    letter = found[0]
    return json.dumps(letter)[1:-1] if not letter.isascii() else f"\\u{ord(letter):04x}"
