"""Logging in with a link or a token, and logging out."""

from pathlib import Path
from typing import Any

import pytest

from emceepee.console.assets import Assets
from emceepee.console.console_login import ConsoleLoginPages
from emceepee.console.console_request import ConsoleRequest
from emceepee.errors import InvalidArguments, NotAllowed
from emceepee.guard.access_control import AccessControl, AccessRules
from emceepee.guard.caller_identity import Rejection
from emceepee.guard.logins import Logins
from support.fakes.clock import FakeClock
from support.in_process.asgi_messages import Answered, a_page_folder, raw_headers

HOST = "127.0.0.1:8080"
OURS = {"sec_fetch_site": "same-origin"}
FORM = {"content_type": "application/x-www-form-urlencoded; charset=UTF-8", **OURS}


class Moody:
    """An authorization server whose keys are unavailable, and a token with too few scopes."""

    async def principal_of(self, token: str) -> str | Rejection:
        return Rejection(503, "Try again.") if token == "later" else Rejection(403, "It lacks the scope <mcp>.")

    def challenge(self) -> bytes:
        return b"Bearer"


class Lobby:
    def __init__(self, folder: Path, check: Moody | None = None, **rules: Any) -> None:
        self.logins = Logins(FakeClock())
        self.codes: list[str] = []
        self.gate = AccessControl(AccessRules(**rules), check, self.logins)
        pages = ConsoleLoginPages(self.gate, self.logins, Assets(a_page_folder(folder)))
        self._routes = {(route.method, route.path): route.serve for route in pages.routes()}

    async def ask(
        self, method: str, path: str = "/console/login", *, query: str = "", body: str = "", **headers: str
    ) -> Answered:
        answered = Answered()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body.encode()}

        given = raw_headers({"host": HOST, **headers})
        visit = ConsoleRequest(
            principal=self.gate.logged_in(given, method=method),
            path=path,
            query={"code": query} if query else {},
            headers=given,
            receive=receive,
            send=answered.send,
        )
        await self._routes[method, path](visit)
        return answered

    def who(self, answered: Answered) -> str | None:
        """Return the principal of the cookie in this response."""
        secret = answered.headers["set-cookie"].partition(";")[0].partition("=")[2]
        return self.logins.principal_of(secret)


@pytest.fixture
async def lobby(tmp_path: Path) -> Lobby:
    lobby = Lobby(tmp_path, tokens={"ses ame+é": "bob"})
    await lobby.logins.codes.invite("ada", lobby.codes.append)
    return lobby


async def test_a_login_link_works_once_and_its_second_use_shows_an_explanation(lobby: Lobby) -> None:
    first = await lobby.ask("GET", query=lobby.codes[0])
    assert (first.status, first.headers["location"], lobby.who(first)) == (303, "/", "ada")
    second = await lobby.ask("GET", query=lobby.codes[0])
    assert second.status == 403
    assert b"newer one" in second.body
    assert "set-cookie" not in second.headers
    assert lobby.who(await lobby.ask("GET", query=lobby.codes[1])) == "ada"


async def test_a_login_link_opened_again_in_the_same_browser_redirects_to_the_page(lobby: Lobby) -> None:
    first = await lobby.ask("GET", query=lobby.codes[0])
    cookie = first.headers["set-cookie"].partition(";")[0]
    again = await lobby.ask("GET", query=lobby.codes[0], cookie=cookie)
    assert (again.status, again.headers["location"]) == (303, "/")
    assert len(lobby.codes) == 2


async def test_the_login_cookie_is_limited_to_its_port_and_hidden_from_scripts(lobby: Lobby) -> None:
    given = (await lobby.ask("GET", query=lobby.codes[0])).headers["set-cookie"].split("; ")
    assert given[0].startswith("emceepee_8080=")
    assert set(given[1:]) == {"Path=/", "Max-Age=43200", "HttpOnly", "SameSite=Strict"}


@pytest.mark.parametrize(("proto", "is_secure"), [("https", True), ("HTTPS, http", True), ("http", False), ("", False)])
async def test_the_login_cookie_is_secure_behind_a_proxy_with_tls(lobby: Lobby, proto: str, is_secure: bool) -> None:
    answered = await lobby.ask("GET", query=lobby.codes[0], x_forwarded_proto=proto)
    assert answered.headers["set-cookie"].endswith("; Secure") is is_secure


async def test_a_token_logs_its_principal_in(lobby: Lobby) -> None:
    answered = await lobby.ask("POST", body="token=+ses+ame%2B%C3%A9%0A", **FORM)
    assert (answered.status, answered.headers["location"], lobby.who(answered)) == (303, "/", "bob")


@pytest.mark.parametrize("body", ["token=wrong", "token=", "", "other=1", "token=%00", "token=%F0%9F"])
async def test_a_wrong_token_shows_the_login_page_again(lobby: Lobby, body: str) -> None:
    answered = await lobby.ask("POST", body=body, **FORM)
    assert (answered.status, "set-cookie" in answered.headers) == (403, False)
    assert b"That token is not known here." in answered.body


async def test_without_configured_tokens_the_login_page_explains_it(tmp_path: Path) -> None:
    answered = await Lobby(tmp_path).ask("POST", body="token=x", **FORM)
    assert b"takes no tokens" in answered.body


async def test_a_failed_token_check_is_shown_as_escaped_text(tmp_path: Path) -> None:
    lobby = Lobby(tmp_path, Moody())
    assert (await lobby.ask("POST", body="token=later", **FORM)).status == 503
    narrow = await lobby.ask("POST", body="token=narrow", **FORM)
    assert (narrow.status, b"&lt;mcp&gt;" in narrow.body) == (403, True)


@pytest.mark.parametrize(
    "headers",
    [{"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"}, {"origin": "http://127.0.0.1:3000"}, {}],
)
async def test_a_page_of_another_site_cannot_log_anyone_in_or_out(lobby: Lobby, headers: dict[str, str]) -> None:
    secret = lobby.logins.begin("ada")
    kind = {"content_type": "application/x-www-form-urlencoded"}
    for path in ("/console/login", "/console/logout"):
        with pytest.raises(NotAllowed):
            await lobby.ask(
                "POST", path, body="token=ses+ame%2B%C3%A9", cookie=f"emceepee_8080={secret}", **kind, **headers
            )
    assert lobby.logins.principal_of(secret) == "ada"


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", '{"token":"x"}'),
        ("", "token=x"),
        ("application/x-www-form-urlencoded", "&".join("a=1" for _ in range(50))),
    ],
)
async def test_a_login_body_that_is_not_the_form_is_rejected(lobby: Lobby, kind: str, body: str) -> None:
    with pytest.raises(InvalidArguments):
        await lobby.ask("POST", body=body, content_type=kind, **OURS)


async def test_logging_out_ends_the_login_and_deletes_the_cookie(lobby: Lobby) -> None:
    secret = lobby.logins.begin("ada")
    answered = await lobby.ask("POST", "/console/logout", cookie=f"emceepee_8080={secret}", **OURS)
    assert (answered.status, answered.headers["location"]) == (303, "/console/login")
    assert answered.headers["set-cookie"].startswith("emceepee_8080=; Path=/; Max-Age=0;")
    assert lobby.logins.principal_of(secret) is None
    assert (await lobby.ask("POST", "/console/logout", **OURS)).status == 303


async def test_a_new_login_ends_the_previous_one(lobby: Lobby) -> None:
    secret = lobby.logins.begin("ada")
    answered = await lobby.ask("POST", body="token=ses+ame%2B%C3%A9", cookie=f"emceepee_8080={secret}", **FORM)
    assert (lobby.who(answered), lobby.logins.principal_of(secret)) == ("bob", None)


async def test_the_login_page_shows_no_error_at_first(lobby: Lobby) -> None:
    answered = await lobby.ask("GET")
    assert (answered.status, b"<p></p>" in answered.body) == (200, True)
