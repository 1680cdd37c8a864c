"""Login and logout: a one-time link or a token is exchanged for a cookie."""

from urllib.parse import parse_qsl

from emceepee.console.assets import Assets, respond_page
from emceepee.console.console_request import ConsoleRequest, Route
from emceepee.errors import InvalidArguments, NotAllowed
from emceepee.guard.access_control import AccessControl, is_same_origin
from emceepee.guard.caller_identity import Rejection
from emceepee.guard.logins import Logins, cookie_name, cookies
from emceepee.telemetry.logs import EventLog
from emceepee.web.asgi import Header, Headers, respond

log = EventLog("console")
LOGIN_PATH, LOGOUT_PATH, HOME_PATH = "/console/login", "/console/logout", "/"
FORM = b"application/x-www-form-urlencoded"
MOST_FIELDS = 10
USED = (
    "This link has been used, or a newer one was made. The newest is in the output of emceepee, where it was started; "
    "you can also log in with a token, if this server has any."
)
UNKNOWN = "That token is not known here."
NO_TOKENS = "This server takes no tokens. Open the link in the output of emceepee, where it was started."


class ConsoleLoginPages:
    """Login pages, open to everyone. They reveal only whether a code or token is valid."""

    def __init__(self, gate: AccessControl, logins: Logins, assets: Assets) -> None:
        self._gate, self._logins, self._assets = gate, logins, assets

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("GET", LOGIN_PATH, self._show_form, is_open=True),
            Route("POST", LOGIN_PATH, self._log_in, is_open=True),
            Route("POST", LOGOUT_PATH, self._log_out, is_open=True),
        )

    async def _show_form(self, request: ConsoleRequest) -> None:
        code = request.query.get("code")
        if code is None:
            await self._page(request, 200, "")
        elif (principal := await self._gate.redeem(code, request.peer)) is not None:
            await self._begin_login(request, principal, "link")
        elif request.principal is not None:  # the link was opened again, in the browser that used it
            await redirect(request, HOME_PATH)
        else:
            await self._page(request, 403, USED)

    async def _log_in(self, request: ConsoleRequest) -> None:
        _check_same_origin(request)
        if request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != FORM:
            raise InvalidArguments("Send the form of this page.")
        try:
            fields = dict(parse_qsl((await request.body()).decode(), max_num_fields=MOST_FIELDS))
        except ValueError:
            raise InvalidArguments("The form cannot be read.") from None
        verdict = await self._gate.check_token(fields.get("token", "").strip().encode(), request.peer)
        if not isinstance(verdict, Rejection):
            await self._begin_login(request, verdict, "token")
            return
        log.info("console_login_refused")
        if verdict.status == 401:
            await self._page(request, 403, UNKNOWN if self._gate.takes_tokens else NO_TOKENS)
        else:
            await self._page(request, verdict.status, verdict.message)

    async def _log_out(self, request: ConsoleRequest) -> None:
        _check_same_origin(request)
        self._end_login(request)
        await self._logins.save()
        await redirect(request, LOGIN_PATH, _cookie(request.headers, "", 0))

    async def _begin_login(self, request: ConsoleRequest, principal: str, by: str) -> None:
        self._end_login(request)
        log.info("console_login", principal=principal, by=by)
        secret = self._logins.begin(principal)
        await self._logins.save()
        await redirect(request, HOME_PATH, _cookie(request.headers, secret, round(self._logins.seconds)))

    def _end_login(self, request: ConsoleRequest) -> None:
        for secret in cookies(request.headers):
            self._logins.end(secret)

    async def _page(self, request: ConsoleRequest, status: int, message: str) -> None:
        await respond_page(request.send, status, self._assets.page("login.html", {"message": message}))


async def redirect(request: ConsoleRequest, path: str, *headers: Header) -> None:
    await respond(request.send, 303, b"", (b"location", path.encode()), *headers)


def _check_same_origin(request: ConsoleRequest) -> None:
    """Prevent login CSRF: another site's page can log nobody in or out. Raises: NotAllowed."""
    if not is_same_origin(request.headers, method="POST"):
        raise NotAllowed("Only the console's own page may send this.")


def _cookie(headers: Headers, secret: str, seconds: int) -> Header:
    # Behind a TLS proxy. A client that forges this header only receives a cookie that its own browser rejects.
    is_secure = headers.get(b"x-forwarded-proto", b"").partition(b",")[0].strip().lower() == b"https"
    text = f"{cookie_name(headers)}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"
    return b"set-cookie", (text + ("; Secure" if is_secure else "")).encode()
