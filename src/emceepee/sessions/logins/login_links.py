"""Links of emceepee's own that begin a login, so that it ends in the browser that began it.

Several people may use one emceepee, each as a principal. Without these links, anyone could open the address of an
authorization server: a person who is logged in there, and has agreed to emceepee before, would log in another principal
with one click. So each login has a link here. Its page names the principal. A person who continues gets a cookie, and
emceepee accepts the authorization server's answer only from the browser with that cookie.
"""

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass, field, replace

from emceepee.backends.oauth.flow import AskPerson, BrowserLogin
from emceepee.sessions.secret_records import NO_OWNER, SecretRecords, ServerKey

LINK_PATH = "/oauth/login/"
LINK = "link"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginLink:
    """The content of the link's page. `browser` is the digest of the cookie of the browser that continued."""

    principal: str
    server: str
    host: str
    issuer_host: str
    url: str = field(repr=False)
    browser: str | None = None


class LoginLinks:
    """Store and check login links. Every method may raise StoreUnavailable."""

    def __init__(self, secrets: SecretRecords) -> None:
        self._secrets = secrets

    async def make(self, key: ServerKey, state: BrowserLogin) -> str:
        """Return the path of the link to this login. It is the same after a restart."""
        ticket = _ticket_of(state.request.state)
        if await self.find(ticket) is None:
            asked = AskPerson(state.url, state.grantor.server.issuer)
            link = LoginLink(
                principal=key.principal,
                server=key.server,
                host=asked.host,
                issuer_host=asked.issuer_host,
                url=state.url,
            )
            await self._secrets.replace(NO_OWNER, _record(ticket), _written(link))
        return f"{LINK_PATH}{ticket}"

    async def find(self, ticket: str) -> LoginLink | None:
        found = await self._secrets.read(NO_OWNER, _record(ticket))
        return LoginLink(**json.loads(found.data)) if found is not None and found.data else None

    async def begin(self, ticket: str, cookie: str) -> str | None:
        """Bind the login to the browser with this cookie.

        Return the address of the authorization server, or None if the login is over.
        """
        link = await self.find(ticket)
        if link is None:
            return None
        await self._secrets.replace(NO_OWNER, _record(ticket), _written(replace(link, browser=_digest(cookie))))
        return link.url

    async def may_answer(self, state: str, cookie: str | None, *, has_link: bool = False) -> bool:
        """Return whether an answer with this state is accepted from the browser with this cookie.

        A login without a link was not begun here: the operator logs in at a terminal, or an older version began it.
        With `has_link`, the login was given a link. If the store has lost it, no browser can prove that it began the
        login (login CSRF).
        """
        link = await self.find(_ticket_of(state))
        if link is None:
            return not has_link
        return cookie is not None and hmac.compare_digest(_digest(cookie), link.browser or "")

    async def forget(self, state: str) -> None:
        await self._secrets.forget(NO_OWNER, _record(_ticket_of(state)))


def _ticket_of(state: str) -> str:
    """Return the last part of the link. It does not reveal the state."""
    return hashlib.sha256(f"link {state}".encode()).hexdigest()


def _record(ticket: str) -> str:
    return json.dumps([LINK, _digest(ticket)])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _written(link: LoginLink) -> bytes:
    return json.dumps(asdict(link)).encode()
