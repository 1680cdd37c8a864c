"""What must never be seen in a log: values under telling names, and credentials inside addresses."""

import re
from collections.abc import Mapping
from typing import Any

from emceepee.codec import decode, encode_text

MASK = "***"
_WORDS = "authorization|cookie|password|passwd|secret|token|api[-_]?key|apikey|credentials?|private[-_]?key"
_SECRET_WORD = re.compile(f"(?i){_WORDS}")
_SECRET_NAME = re.compile(rf"(?i)(^|[-_.])({_WORDS})($|[-_.])")
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # accessToken is an access_token
_USERINFO = re.compile(r"(?<=://)[^/?#\s]+@")
_QUERY_VALUE = re.compile(r"([?&][^=&#\s]+=)[^&#\s]*")


class Invitation(str):
    """An address that is logged so that someone follows it: shown whole."""

    __slots__ = ()


def redacted(value: Any, *, name: str = "") -> Any:
    """The same shape with secrets masked; `name` is the key under which the value stands."""
    if name and _SECRET_NAME.search(_WORD_BEGINS.sub("_", name)):
        return MASK
    if isinstance(value, Mapping):
        return {key: redacted(item, name=str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    if isinstance(value, str) and not isinstance(value, Invitation):
        return _redacted_text(value)
    return value


def _redacted_text(text: str) -> str:
    """Addresses lose their secrets; a text that is JSON is looked into, because servers answer with such texts."""
    if text[:1] in ("{", "[") and _SECRET_WORD.search(text):
        try:
            return encode_text(redacted(decode(text.encode("utf-8", "replace"))))
        except (ValueError, RecursionError):
            pass  # it only looks like JSON
    return public_url(text) if "://" in text else text


def public_url(url: str) -> str:
    """An address without its user, password and query values."""
    return _QUERY_VALUE.sub(rf"\1{MASK}", _USERINFO.sub("", url))
