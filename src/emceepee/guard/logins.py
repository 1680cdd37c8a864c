"""Logins of people at a browser: the session cookies that one-time codes and tokens are exchanged for."""

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from emceepee.clock import Clock
from emceepee.guard.login_codes import LoginCodes, is_code
from emceepee.guard.saved_logins import SavedLogins
from emceepee.store.store import Store, StoredLogin, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("guard")
COOKIE_BYTES = 32
LOGIN_SECONDS = 12 * 3600.0  # a working day; counted from the login, however much it is used
SHORT_LOGIN_SECONDS = 3600.0  # where logins stand on tokens that someone else may revoke
MOST_LOGINS = 1000  # then the oldest is forgotten
_PORT = re.compile(rb":(\d{1,5})\Z")


@dataclass(frozen=True, slots=True)
class _Login:
    principal: str
    until: datetime


class Logins:
    """Keeps digests only: what is compared is never the secret, so that timing tells nothing.

    With a store, logins outlive the process, and hold for every process that uses it.
    """

    def __init__(self, clock: Clock, *, seconds: float = LOGIN_SECONDS, store: Store | None = None) -> None:
        self._clock, self.seconds, self._store = clock, seconds, store
        self._saved = SavedLogins(store)
        self._logins: dict[bytes, _Login] = {}  # in the order in which they end
        self._seen_revision: int | None = None  # of what all processes share
        self.on_end: Callable[[], None] | None = None  # called when someone has logged out
        self.codes = LoginCodes(clock, self._saved, store)

    def begin(self, principal: str) -> str:
        """The secret that a browser is to keep in its cookie."""
        secret = secrets.token_urlsafe(COOKIE_BYTES)
        while len(self._logins) >= MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        login = _Login(principal, self._clock.now() + timedelta(seconds=self.seconds))
        self._logins[_digest(secret)] = login
        self._saved.put(StoredLogin(_digest(secret), principal, login.until))
        return secret

    def principal_of(self, secret: str) -> str | None:
        """Who logged in with it, as long as that holds."""
        login = self._logins.get(_digest(secret))
        if login is None or self._clock.now() >= login.until:
            return None
        return login.principal

    def end(self, secret: str) -> None:
        if self._logins.pop(_digest(secret), None) is not None:
            self._saved.end(_digest(secret))
            if self.on_end is not None:
                self.on_end()

    # The store.

    async def save(self) -> None:
        """Before anyone is told that a login has begun or ended. What cannot be saved now is with the next `reload`."""
        await self._saved.save()

    async def load(self) -> None:
        """At the start. What cannot be read then, others may change until it can."""
        try:
            await self.codes.clear_left_over()
            await self.reload()
        except StoreError as error:
            log.warning("logins_not_loaded", error=str(error))

    async def refresh(self) -> None:
        """Take over a login that has begun at another process just now. What cannot be read, the next one may find."""
        try:
            if self._store is not None and await self._store.shared_revision() != self._seen_revision:
                await self.reload()
        except StoreError as error:
            log.debug("logins_not_loaded", error=str(error))

    async def reload(self) -> None:
        """Take over what other processes changed, or the last one left. Raises: StoreError."""
        if self._store is None:
            return
        await self._saved.flush()
        revision, found = await self._store.shared_revision(), await self._store.logins()
        stored = {login.digest: _Login(login.principal, login.until) for login in found if not is_code(login)}
        has_ended = any(digest not in stored for digest in self._logins)
        now = self._clock.now()
        in_order = sorted(stored.items(), key=lambda item: item[1].until)
        self._logins = {digest: login for digest, login in in_order if login.until > now}
        self._seen_revision = revision
        if has_ended and self.on_end is not None:
            self.on_end()
        await self.codes.replace_used(found)


def cookie_name(headers: Mapping[bytes, bytes]) -> str:
    """Browsers send cookies to every port of a host, so the port is in the name: two emceepees do not mix theirs up."""
    port = _PORT.search(headers.get(b"host", b""))
    return f"emceepee_{port[1].decode()}" if port else "emceepee"


def cookies(headers: Mapping[bytes, bytes]) -> list[str]:
    """What the browser sent under our name. There can be several: pages at other ports can set cookies too."""
    name = cookie_name(headers)
    pairs = (part.partition("=") for part in headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
