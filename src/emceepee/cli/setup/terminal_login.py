"""A login at a terminal: show the authorization URL, then accept the browser's redirect or a pasted one.

It mediates between the server and the logins as a session does (`sessions/logins/authorizer.py`), but for one user, who
waits.
"""

import asyncio
import sys
import webbrowser
from collections.abc import Mapping
from typing import Any

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.link import NoAccess, RpcError
from emceepee.backends.oauth.flow import AskPerson
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.backends.spec import HttpTarget
from emceepee.cli.setup.pasted_lines import PastedLines
from emceepee.clock import iso
from emceepee.sessions.logins.running_login import RunningLogin
from emceepee.sessions.logins.server_logins import ServerLogins
from emceepee.sessions.secret_records import ServerKey
from emceepee.terminal_text import printable, printable_json
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import METHOD_NOT_FOUND

IS_OVER_SSH = ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY")


def has_browser(environment: Mapping[str, str], platform: str) -> bool:
    """Return whether a browser that opens on this machine is visible to the user at the terminal."""
    if any(environment.get(name) for name in IS_OVER_SSH):
        return False
    return platform == "darwin" or any(environment.get(name) for name in SCREENS)


class TerminalLogin:
    """The `Authorizer` for the link, and the `LoginWatcher` for the login."""

    def __init__(
        self, logins: ServerLogins, key: ServerKey, target: HttpTarget, *, opens_browser: bool, says_json: bool
    ) -> None:
        self._logins, self._key, self._target, self.slot = logins, key, target, logins.slot(key)
        self._opens_browser, self._says_json = opens_browser, says_json
        self.login: RunningLogin | None = None

    # The interface for the link.

    @property
    def trouble(self) -> str | None:
        """None: the command reports problems when it ends."""
        return None

    async def load(self) -> None:
        await self._logins.load(self._key)

    def renew_soon(self, stale: TokenSet) -> None:
        """Do nothing: the tokens' next user renews them."""

    async def renew(self, stale: TokenSet) -> Renewal:
        return await self._logins.renew(self._key, self._target, stale)

    async def log_in(self, demand: Demand, stale: TokenSet | None) -> None:
        """Raises: NoAccess."""
        self.login = self._logins.begin(self._key, self._target, demand, stale, is_new=True)
        self.login.join(self)
        await self.login.turn.wait()
        if not self.login.is_over:
            raise NoAccess("someone has to log in", wants_person=True)
        if (reason := self.login.outcome.result()) is not None:
            raise NoAccess(reason)

    async def wait(self, origin: object | None, *, is_first: bool) -> None:
        """Do nothing, because no calls use this link."""

    @property
    def is_logging_in(self) -> bool:
        return self.login is not None and not self.login.is_over

    @property
    def login_prompt(self) -> AskPerson | None:
        return None

    # The interface for the login.

    async def put_question(self, asked: AskPerson, *, seconds: float) -> bool:
        self._show(asked)
        if self._opens_browser:
            await asyncio.to_thread(webbrowser.open, asked.url)
        if asked.user_code is None:
            with PastedLines.reading() as lines:
                while True:
                    self._take(await lines.next())
        return True

    def on_login_ended(self, reason: str | None) -> None:
        """Do nothing: the command waits for the login itself."""

    def _take(self, line: str) -> None:
        assert self.login is not None  # it asked the user
        if self.login.receive(line.strip("\"'<>")) is not None:
            sys.stderr.write(
                "emceepee: this address is not from this login. Paste the whole address, starting with http.\n"
            )

    def _show(self, asked: AskPerson) -> None:
        if self._says_json:
            facts: dict[str, Any] = {"server": self._key.server, "state": "authorizing", "authorizationUrl": asked.url}
            facts |= {"issuer": asked.issuer}
            if asked.user_code is not None:
                facts["userCode"] = asked.user_code
            if asked.expires_at is not None:
                facts["expiresAt"] = iso(asked.expires_at)
            sys.stdout.write(f"{printable_json(facts)}\n")
        else:
            sys.stdout.write(printable(_words(self._key.server, asked, opens_browser=self._opens_browser)))
        sys.stdout.flush()


def _words(server: str, asked: AskPerson, *, opens_browser: bool) -> str:
    whom = ""
    if asked.host != asked.issuer_host:
        whom = (
            f"You log in at {asked.host}. The login is then passed to the authorization server "
            f"{asked.issuer_host}:\ncontinue only if it may act for you at {asked.host}.\n\n"
        )
    if asked.user_code is not None:
        enter = f"If you are asked for a code, it is {asked.user_code}"
        return f"To log in to {server}, open this address in any browser:\n\n  {asked.url}\n\n{enter}\n{whom}"
    how = "A browser opens. If it does not, open this address:" if opens_browser else "Open this address in a browser:"
    paste = (
        "If the browser is on another machine, it ends at a page that fails to load. Copy the address of that page,\n"
        "paste it here, and press Enter."
    )
    return f"To log in to {server}, agree in a browser. {how}\n\n  {asked.url}\n\n{whom}{paste}\n"


class NoListener:
    """Rejects all requests of the server: the link only tests whether the server accepts the login."""

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        raise RpcError({"code": METHOD_NOT_FOUND, "message": "nobody is here to answer"})

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None: ...

    def handle_output(self, line: str, source: str) -> None: ...

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        return None

    def handle_task(self, task: BackendTask, origin: object | None) -> None: ...
