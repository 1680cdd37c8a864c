"""Mask secrets in files of any format for display: values with telling names, and program arguments."""

import json
import re
from collections.abc import Iterator

from emceepee.telemetry.argument_mask import TELLING, is_reference, mask_bearers, masked_arguments
from emceepee.telemetry.redaction import MASK, masked_url

_SECRET_MEMBER = re.compile(
    rf"(?i)(?P<key>(?<![\w.?&-])[\"']?[\w.-]*{TELLING}[\"']?\s*[:=]\s*)"
    r"(?P<value>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|(?:\$\{[^{}\n]*\}|[^\s\",{}\[\]])(?:\$\{[^{}\n]*\}|[^\n,}])*)"
)
# A word of a list: quoted, or an item of YAML. An unclosed quote ends with its line.
_WORD = re.compile(
    r"(?<!\w)(?:\"(?P<double>(?:[^\"\\\n]|\\.)*)\"?|'(?P<single>[^'\n]*)'?)"
    r"|(?m:^[+ -]?[ \t]*- +(?P<bare>[^\s\"'{\[#](?:[^\"'\n#]|(?<=\w)'|(?<=\S)#)*)(?:#.*)?$)"
)
_BETWEEN_WORDS = re.compile(
    r"\s*(?:,(?:[\s+-]|//[^\n]*\n|#[^\n]*\n|/\*[^*]*\*/)*|[^\S\n]*(?:#[^\n]*)?\n[+ -]?[ \t]*- +)[\"']?"
).fullmatch
# A quoted text ends at its quote, even if its URL continues; a bare URL ends at the next space.
_WITH_ADDRESS = re.compile(
    r"(?<!\w)(?:\"(?:[^\"\\\n]|\\.)*\"?|'[^'\n]*'?)|(?<![\w+.-])[\w+.-]{1,40}://\S*|[?&][^=&#?\s]+=\S*"
)


def masked(text: str) -> str:
    """Return a file or diff safe to show on a screen or in a bug report. The number of lines stays the same."""
    text = _SECRET_MEMBER.sub(_mask_value, _mask_words(text))
    return _WITH_ADDRESS.sub(_mask_address, mask_bearers(text))


def _mask_words(text: str) -> str:
    parts, end = [], 0
    for words in _lists_of_words(text):
        for word, shown in zip(words, masked_arguments(map(_read_word, words)), strict=True):
            if shown != _read_word(word):
                kind = word.lastgroup or ""
                parts += [text[end : word.start(kind)], json.dumps(shown)[1:-1] if kind == "double" else shown]
                end = word.end(kind)
    return "".join([*parts, text[end:]])


def _lists_of_words(text: str) -> Iterator[list["re.Match[str]"]]:
    """Yield each list of words, because any of them may be a program's arguments."""
    words: list[re.Match[str]] = []
    for word in _WORD.finditer(text):
        if words and not _BETWEEN_WORDS(text, words[-1].end(), word.start(word.lastgroup or "")):
            yield words
            words = []
        words.append(word)
    yield words


def _read_word(found: "re.Match[str]") -> str:
    text = found[found.lastgroup or ""]
    try:
        return str(json.loads(f'"{text}"', strict=False)) if found.lastgroup == "double" else text.strip()
    except ValueError:
        return text


def _mask_address(found: "re.Match[str]") -> str:
    text, end = found[0], ""
    if text[0] in "\"'" and text[1:].endswith(text[0]):
        text, end = text[:-1], text[0]
    return masked_url(text) + end


def _mask_value(found: "re.Match[str]") -> str:
    value = found["value"]
    if value.startswith(MASK) or is_reference(value.strip("\"' ")) or value.strip("\"', ") == "":
        return found[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{found['key']}{quote}{MASK}{quote}"
