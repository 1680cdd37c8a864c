"""Browser pages for logins to servers: the page that begins a login, and the callback page."""

import hashlib
import html
import re
import secrets
from urllib.parse import parse_qs

from emceepee.guard.access_control import AccessControl
from emceepee.sessions.logins.login_links import LINK_PATH, LoginLink
from emceepee.sessions.logins.server_logins import ServerLogins
from emceepee.store.store import StoreError
from emceepee.web.asgi import (
    BodyTooLarge,
    CallerLeft,
    Headers,
    Receive,
    Scope,
    Send,
    read_body,
    respond,
    respond_json,
)
from emceepee.web.callback import (
    PAGE_HEADERS,
    CallbackOutcome,
    callback_page,
    document_digest,
    is_callback,
    is_login_path,
)

_TICKET = re.compile(rf"{LINK_PATH}([0-9a-f]{{64}})")
COOKIE_SECONDS = 86_400
FORM_BYTES = 4096
OVER = CallbackOutcome(
    404, "No login is waiting", "This link was used already, or its login is over. Request a new link."
)
REFUSED = CallbackOutcome(403, "Not from this page", "Open the link again, and continue from the page that it shows.")
# The gate checks the origin, which a form sends only if the referrer policy allows it. The last policy wins.
LINK_HEADERS = (*PAGE_HEADERS, (b"referrer-policy", b"same-origin"))


def is_page(path: str) -> bool:
    """Return whether a request for this path is served here."""
    return is_login_path(path) or _TICKET.fullmatch(path) is not None


class ServerLoginPages:
    """Serves its pages without authentication, because browsers have no token."""

    def __init__(self, logins: ServerLogins, gate: AccessControl) -> None:
        self._logins, self._gate = logins, gate

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> bool:
        """Return False if the method is not served at this path."""
        path, method = scope["path"], scope["method"]
        ticket = _TICKET.fullmatch(path)
        if method not in (("GET", "POST") if ticket else ("GET",)):
            return False
        if is_callback(path):
            query = scope["query_string"].decode("latin-1")
            outcome = await self._logins.receive(f"{path}?{query}", cookie=self._cookie(headers))
            await _show(send, outcome)
        elif ticket is None:
            await self._document(document_digest(path) or "", send)
        else:
            try:
                await self._link(ticket.group(1), headers, receive if method == "POST" else None, send)
            except StoreError as error:
                await _show(send, CallbackOutcome(503, "Try again", f"{error}."))
        return True

    async def _document(self, digest: str, send: Send) -> None:
        if (document := await self._logins.client_document(digest)) is not None:
            await respond_json(send, 200, document)
        else:
            await respond_json(send, 404, {"error": "emceepee was started without --public-url."})

    async def _link(self, ticket: str, headers: Headers, receive: Receive | None, send: Send) -> None:
        """Show which principal the login is for. On a submitted form, redirect to the authorization server."""
        link = await self._logins.links.find(ticket)
        if link is None:
            await _show(send, OVER)
            return
        cookie = self._cookie(headers)
        if receive is None:
            cookie = cookie or secrets.token_urlsafe(32)
            page = _link_page(link, _proof_of(cookie))
            await respond(send, 200, page, *LINK_HEADERS, (b"set-cookie", self._new_cookie(cookie)))
            return
        if cookie is None or not secrets.compare_digest(await _proof_in(receive), _proof_of(cookie)):
            await _show(send, REFUSED)
            return
        person = await self._gate.find_login(headers, method="POST")
        if person not in (None, link.principal):
            words = f"This browser is logged in to emceepee as {person}, and the link is for {link.principal}."
            await _show(send, CallbackOutcome(403, "A link for someone else", words))
        elif (url := await self._logins.links.begin(ticket, cookie)) is None:
            await _show(send, OVER)
        else:
            await respond(send, 303, b"", (b"location", url.encode()), (b"referrer-policy", b"no-referrer"))

    @property
    def _is_secure(self) -> bool:
        return self._logins.is_secure

    @property
    def _name(self) -> str:
        """The cookie's name. Browsers accept the prefix only from this host over TLS, so no other site can plant it."""
        return "__Host-emceepee-browser" if self._is_secure else "emceepee-browser"

    def _cookie(self, headers: Headers) -> str | None:
        """Return the random text that distinguishes this browser from others."""
        for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self._name and value:
                return value
        return None

    def _new_cookie(self, value: str) -> bytes:
        secure = "; Secure" if self._is_secure else ""
        return f"{self._name}={value}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax{secure}".encode()


async def _show(send: Send, outcome: CallbackOutcome) -> None:
    await respond(send, outcome.status, callback_page(outcome), *PAGE_HEADERS)


def _proof_of(cookie: str) -> str:
    """Return the form's CSRF token: only a page that was shown to this browser has it."""
    return hashlib.sha256(f"form {cookie}".encode()).hexdigest()


async def _proof_in(receive: Receive) -> str:
    try:
        fields = parse_qs((await read_body(receive, FORM_BYTES)).decode(), max_num_fields=10)
    except (BodyTooLarge, CallerLeft, ValueError):
        return ""
    proof = fields.get("proof", [""])[0]
    return proof if proof.isascii() else ""


def _link_page(link: LoginLink, proof: str) -> bytes:
    server, principal, host = (html.escape(text) for text in (link.server, link.principal, link.host))
    issuer = ""
    if link.issuer_host != link.host:
        issuer = f"<p>The login is given to the authorization server <b>{html.escape(link.issuer_host)}</b>.</p>"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Log in to a server</title>'
        f"<h1>Log in to {server} for {principal}</h1>"
        f"<p>You log in at <b>{host}</b>. After that, everyone who uses emceepee as <b>{principal}</b> can use your"
        f" account there through {server}.</p>{issuer}"
        f"<p>Continue only if you are {principal}. If somebody else sent you this link, close this page.</p>"
        f'<form method="post"><input type="hidden" name="proof" value="{proof}">'
        f"<button>Log in for {principal}</button></form></html>"
    ).encode()
