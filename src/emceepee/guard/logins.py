"""Browser logins: the session cookies that people receive in exchange for one-time codes and tokens."""

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
LOGIN_SECONDS = 12 * 3600.0  # a working day, counted from the login; use does not extend it
SHORT_LOGIN_SECONDS = 3600.0  # for logins based on tokens that an external issuer may revoke
MOST_LOGINS = 1000  # beyond it, the oldest is dropped
_PORT = re.compile(rb":(\d{1,5})\Z")


@dataclass(frozen=True, slots=True)
class _Login:
    principal: str
    until: datetime


class Logins:
    """The current logins. Only digests are stored and compared, so that timing reveals nothing about a secret.

    With a store, logins survive the process, and are valid at every process that shares the store.
    """

    def __init__(self, clock: Clock, *, seconds: float = LOGIN_SECONDS, store: Store | None = None) -> None:
        self._clock, self.seconds, self._store = clock, seconds, store
        self._saved = SavedLogins(store)
        self._logins: dict[bytes, _Login] = {}  # by expiry, the earliest first
        self._seen_revision: int | None = None  # the last revision of the shared records that was read
        self._watchers: list[Callable[[], None]] = []
        self.codes = LoginCodes(clock, self._saved, store)

    def begin(self, principal: str) -> str:
        """Begin a login, and return the secret for the browser's cookie."""
        secret = secrets.token_urlsafe(COOKIE_BYTES)
        while len(self._logins) >= MOST_LOGINS:
            del self._logins[next(iter(self._logins))]
        login = _Login(principal, self._clock.now() + timedelta(seconds=self.seconds))
        self._logins[_digest(secret)] = login
        self._saved.put(StoredLogin(_digest(secret), principal, login.until))
        return secret

    def principal_of(self, secret: str) -> str | None:
        """Return the principal of a login, or None if it is unknown or expired."""
        login = self._logins.get(_digest(secret))
        if login is None or self._clock.now() >= login.until:
            return None
        return login.principal

    def end(self, secret: str) -> None:
        if self._logins.pop(_digest(secret), None) is not None:
            self._saved.end(_digest(secret))
            self._report_end()

    def watch_ends(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` after each logout."""
        self._watchers.append(watcher)

    def _report_end(self) -> None:
        for watcher in self._watchers:
            watcher()

    # The store.

    async def save(self) -> None:
        """Save changes. Call this before reporting a login or logout. The next `reload` retries unsaved changes."""
        await self._saved.save()

    async def load(self) -> None:
        """Load the logins at startup. If the store is unavailable, log a warning; a later `reload` reads them."""
        try:
            await self.codes.clear_left_over()
            await self.reload()
        except StoreError as error:
            log.warning("logins_not_loaded", error=str(error))

    async def refresh(self) -> None:
        """Reload if another process has changed the store. If the store is unavailable, a later call may succeed."""
        try:
            if self._store is not None and await self._store.shared_revision() != self._seen_revision:
                await self.reload()
        except StoreError as error:
            log.debug("logins_not_loaded", error=str(error))

    async def reload(self) -> None:
        """Read the changes of other processes, and the logins from before a restart. Raises: StoreError."""
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
        if has_ended:
            self._report_end()
        await self.codes.replace_used(found)


def cookie_name(headers: Mapping[bytes, bytes]) -> str:
    """Return the name of the session cookie.

    The name includes the port, because browsers send cookies to every port of a host. So two instances of emceepee on
    one host do not overwrite each other's cookies.
    """
    port = _PORT.search(headers.get(b"host", b""))
    return f"emceepee_{port[1].decode()}" if port else "emceepee"


def cookies(headers: Mapping[bytes, bytes]) -> list[str]:
    """Return the values of our session cookie. Several are possible, because pages at other ports can set cookies."""
    name = cookie_name(headers)
    pairs = (part.partition("=") for part in headers.get(b"cookie", b"").decode("latin-1").split(";"))
    return [value.strip() for key, _, value in pairs if key.strip() == name]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
