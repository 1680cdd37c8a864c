"""Logins of people at a browser: one-time codes, and the session cookies that these are exchanged for."""

import hashlib
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from emceepee.clock import Clock
from emceepee.store.store import Store, StoredLogin, StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("guard")
CODE_BYTES = 24  # 192 random bits: whoever has the code is in, once
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
        self._unsaved: dict[bytes, _Login | None] = {}  # None: it was ended
        self._codes: dict[bytes, str] = {}  # one per principal
        self._logins: dict[bytes, _Login] = {}  # in the order in which they end
        self.on_end: Callable[[], None] | None = None  # called when someone has logged out
        self.on_code: Callable[[str], None] | None = None  # called with every new code, for a link that people can open

    def invite(self, principal: str) -> None:
        """Make a code that lets the principal in once. It holds until it is used; the one before does not any more."""
        code = secrets.token_urlsafe(CODE_BYTES)
        self._codes = {known: owner for known, owner in self._codes.items() if owner != principal}
        self._codes[_digest(code)] = principal
        if self.on_code is not None:
            self.on_code(code)

    def redeem(self, code: str) -> str | None:
        """Whom the code lets in, if anyone. It is used up, and another is made for the next browser."""
        principal = self._codes.pop(_digest(code), None)
        if principal is not None:
            self.invite(principal)
        return principal

    def begin(self, principal: str) -> str:
        """The secret that a browser is to keep in its cookie."""
        secret = secrets.token_urlsafe(COOKIE_BYTES)
        while len(self._logins) >= MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        login = _Login(principal, self._clock.now() + timedelta(seconds=self.seconds))
        self._logins[_digest(secret)] = self._unsaved[_digest(secret)] = login
        return secret

    def principal_of(self, secret: str) -> str | None:
        """Who logged in with it, as long as that holds."""
        login = self._logins.get(_digest(secret))
        if login is None or self._clock.now() >= login.until:
            return None
        return login.principal

    def end(self, secret: str) -> None:
        if self._logins.pop(_digest(secret), None) is not None:
            self._unsaved[_digest(secret)] = None
            if self.on_end is not None:
                self.on_end()

    # The store.

    async def save(self) -> None:
        """Before anyone is told that a login has begun or ended. What cannot be saved now is with the next `reload`."""
        try:
            await self._save()
        except StoreError as error:
            log.warning("logins_not_saved", error=str(error))

    async def _save(self) -> None:
        for digest, login in list(self._unsaved.items()):
            if self._store is not None and login is None:
                await self._store.end_login(digest)
            elif self._store is not None and login is not None:
                await self._store.add_login(StoredLogin(digest, login.principal, login.until))
            if self._unsaved.get(digest) is login:
                del self._unsaved[digest]

    async def load(self) -> None:
        """At the start. What cannot be read then, others may change until it can."""
        try:
            await self.reload()
        except StoreError as error:
            log.warning("logins_not_loaded", error=str(error))

    async def reload(self) -> None:
        """Take over what other processes changed, or the last one left. Raises: StoreError."""
        if self._store is None:
            return
        await self._save()
        stored = {login.digest: _Login(login.principal, login.until) for login in await self._store.logins()}
        has_ended = any(digest not in stored for digest in self._logins)
        now = self._clock.now()
        in_order = sorted(stored.items(), key=lambda item: item[1].until)
        self._logins = {digest: login for digest, login in in_order if login.until > now}
        if has_ended and self.on_end is not None:
            self.on_end()


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
