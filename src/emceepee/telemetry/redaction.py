"""What must never be seen in a log: values under telling names, and credentials inside addresses."""

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"
_SECRET_NAME = re.compile(
    r"(?i)(^|[-_.])(authorization|cookie|password|passwd|secret|token|api[-_]?key|apikey|credentials?|private[-_]?key)"
    r"($|[-_.])"
)
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
    if isinstance(value, str) and "://" in value and not isinstance(value, Invitation):
        return public_url(value)
    return value


def public_url(url: str) -> str:
    """An address without its user, password and query values."""
    return _QUERY_VALUE.sub(rf"\1{MASK}", _USERINFO.sub("", url))
