"""Validates and encodes the headers of requests."""

import re
from collections.abc import Mapping

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_BREAKS_OUT = re.compile(r"[\r\n\0]").search


def encoded(fields: Mapping[str, str]) -> bytes:
    """Return the encoded lines of a header block.

    Raises:
        ValueError: a name or value that HTTP cannot carry; it names the field and never shows the value.
    """
    lines = []
    for name, value in fields.items():
        if not _NAME(name):
            raise ValueError(f"{name[:100]!r} cannot be the name of a header")
        if _BREAKS_OUT(value):
            raise ValueError(f"the header {name} has a line break or a null byte in it")
        lines.append(f"{name}: {value}\r\n")
    try:
        return "".join(lines).encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError(f"the header {_not_latin(fields)} has a character that HTTP cannot carry") from None


def _not_latin(fields: Mapping[str, str]) -> str:
    return next(name for name, value in fields.items() if any(ord(character) > 0xFF for character in value))
