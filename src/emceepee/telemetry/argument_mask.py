"""Masks secrets in a program's arguments: one rule for the console, the command line, and diffs of files."""

import re
from collections.abc import Iterable

from emceepee.telemetry.redaction import MASK, is_telling, masked_url

TELLING = r"(?:authorization|cookie|token|secret|passw\w{0,20}|passphrase|credentials?|key|(?<![a-z])pat)"
_LONGEST_NAME = 200  # only its end is inspected
_ENDS_TELLING = re.compile(rf"(?i){TELLING}$").search
_FLAG = re.compile(r"--?([\w.-]+)").fullmatch
_PAIR_FLAGS = frozenset({"header", "H", "env", "e"})  # each of their values may be a secret under any name
# Query parameters are excluded: they are masked separately, so that the text after them stays visible.
_NAMED = re.compile(r"(?<![\w.?&-])([\w.-]+)[\"']?\s*[:=]\s*")
_AFTER_P = re.compile(r"-.*|(?:[\d.]+:)*\d{1,5}(?:/\w+)?|@[\w.-]+/[\w.@^~-]+").fullmatch  # port, npm's package
_BEARER = re.compile(r"(?i)\b(bearer|basic)(\s+)(?!\$\{)[^\s\"']+")
_REFERENCE = re.compile(r"(?i)(?:(?:bearer|basic)\s+)?(?:\$\{(?:(?!:-)[^{}])*\})+\s*")


def masked_arguments(words: Iterable[str]) -> list[str]:
    """Mask secrets by their names: `--token x`, `--token=x`, `--env TOKEN=x`, `Authorization: x`, `Bearer x`.

    Takes linear time.
    """
    shown, flag = [], ""
    for word in words:
        shown.append(_masked_after(flag, word))
        found = _FLAG(word)
        flag = found[1] if found else ""
    return shown


def mask_bearers(text: str) -> str:
    return _BEARER.sub(rf"\1\2{MASK}", text)


def is_reference(text: str) -> bool:
    """Return whether the text only refers to a secret. `${X:-default}` does not count: the default may be a secret."""
    return _REFERENCE.fullmatch(text) is not None


def _masked_after(flag: str, word: str) -> str:
    if word and not is_reference(word) and (_tells(flag) or (flag == "p" and not _AFTER_P(word))):
        return MASK
    pair_begins = 0 if flag in _PAIR_FLAGS else None
    for found in _NAMED.finditer(word):
        name = found[1].lstrip("-")
        if (found.start() == pair_begins or _tells(name)) and found.end() < len(word):
            return word if _REFERENCE.fullmatch(word, found.end()) else f"{word[: found.end()]}{MASK}"
        pair_begins = found.end() if name in _PAIR_FLAGS else None
    return masked_url(mask_bearers(word))


def _tells(name: str) -> bool:
    return is_telling(name) or _ENDS_TELLING(name[-_LONGEST_NAME:]) is not None
