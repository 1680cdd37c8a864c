"""The cookies of one link. Load balancers use them to route requests to the server that has our session."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from emceepee.backends.http1.origin import HttpOrigin
from emceepee.clock import Clock

MOST_COOKIES = 50
LONGEST_COOKIE = 4096
_LONGEST_AGE = timedelta(days=400)
_CANNOT_BE_SENT = re.compile(r"[\x00-\x1f\x7f;]").search


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cookie:
    name: str
    value: str
    path: str
    until: datetime | None

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.path

    def is_good(self, now: datetime) -> bool:
        return self.until is None or self.until > now

    def is_for(self, path: str) -> bool:
        return path == self.path or path.startswith(self.path if self.path.endswith("/") else self.path + "/")


class CookieJar:
    """The cookies of one origin, which are sent to that origin only. An empty jar is falsy."""

    def __init__(self, origin: HttpOrigin, clock: Clock) -> None:
        self._origin, self._clock = origin, clock
        self._cookies: dict[tuple[str, str], _Cookie] = {}

    def __bool__(self) -> bool:
        return bool(self._cookies)

    def take(self, lines: list[str], path: str) -> None:
        """Store or delete cookies as the Set-Cookie headers `lines` of a response for `path` specify."""
        now = self._clock.now()
        self._cookies = {key: cookie for key, cookie in self._cookies.items() if cookie.is_good(now)}
        for line in lines:
            cookie = self._cookie(line, path, now)
            if cookie is None:
                continue
            self._cookies.pop(cookie.key, None)
            if cookie.is_good(now):
                self._cookies[cookie.key] = cookie
        while len(self._cookies) > MOST_COOKIES:
            del self._cookies[next(iter(self._cookies))]

    def header(self, path: str) -> str:
        """Return the Cookie header for a request for `path`, or an empty string."""
        now = self._clock.now()
        fitting = [cookie for cookie in self._cookies.values() if cookie.is_for(path) and cookie.is_good(now)]
        fitting.sort(key=lambda cookie: -len(cookie.path))
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in fitting)

    def _cookie(self, line: str, path: str, now: datetime) -> _Cookie | None:
        pair, *rest = line.split(";")
        name, has_value, value = (part.strip(" \t") for part in pair.partition("="))
        attributes = {key.strip().lower(): value.strip() for key, _, value in (part.partition("=") for part in rest)}
        if not name or not has_value or len(pair) > LONGEST_COOKIE or _CANNOT_BE_SENT(name + value):
            return None
        if ("secure" in attributes and not self._origin.is_tls) or not self._is_ours(attributes.get("domain", "")):
            return None
        given_path = attributes.get("path", "")
        if not given_path.startswith("/"):
            given_path = path.rpartition("/")[0] or "/"
        return _Cookie(name=name, value=value, path=given_path, until=_until(attributes, now))

    def _is_ours(self, domain: str) -> bool:
        domain = domain.removeprefix(".").lower()
        return not domain or self._origin.host == domain or self._origin.host.endswith("." + domain)


def _until(attributes: dict[str, str], now: datetime) -> datetime | None:
    """Return the expiration time of a cookie, or None if its attributes specify no valid time."""
    age = attributes.get("max-age", "")
    if age.removeprefix("-").isdecimal() and age.isascii():
        seconds = int(age[:10])
        return now + min(timedelta(seconds=seconds), _LONGEST_AGE) if seconds > 0 else now
    try:
        until = parsedate_to_datetime(attributes.get("expires", ""))
    except (TypeError, ValueError, OverflowError):
        return None
    return until if until.tzinfo is not None else until.replace(tzinfo=UTC)
