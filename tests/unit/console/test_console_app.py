"""The routes of the console: access control and errors."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis.strategies import binary, sampled_from, text

from emceepee.console.assets import Assets
from emceepee.console.console_app import ConsoleApp
from emceepee.console.console_request import ConsoleRequest, Route
from emceepee.console.other_sessions import SessionNotHere
from emceepee.errors import BackendDisconnected, EmceepeeError, ErrorCode, InvalidArguments, NotAllowed, TimedOut
from emceepee.guard.access_control import AccessControl, AccessRules
from emceepee.guard.logins import Logins
from emceepee.web.asgi import CallerLeft, respond_json
from support.fakes.clock import FakeClock
from support.in_process.asgi_messages import Answered, a_page_folder, asked, hung_up, raw_headers

HOST = "127.0.0.1:8080"
OURS = {"sec_fetch_site": "same-origin"}
JSON = {"content_type": "application/json"}
GUARDING = {
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class FakeApi:
    """Two routes that return their principal, and a programmable one."""

    def __init__(self) -> None:
        self.fails: Callable[[], None] = lambda: None
        self.has_begun = False
        self.log: list[str] = []

    def routes(self) -> tuple[Route, ...]:
        return (
            Route("GET", "/waterfall/json", self.who),
            Route("POST", "/console/answer", self.echo),
            Route("GET", "/console/fails", self.fail),
        )

    async def who(self, visit: ConsoleRequest) -> None:
        await respond_json(visit.send, 200, {"principal": visit.principal, "query": dict(visit.query)})

    async def echo(self, visit: ConsoleRequest) -> None:
        await respond_json(visit.send, 200, await visit.json())

    async def fail(self, visit: ConsoleRequest) -> None:
        if self.has_begun:
            await visit.send({"type": "http.response.start", "status": 200, "headers": []})
        self.fails()

    def end_stale_streams(self) -> None:
        pass

    def end_streams(self) -> None:
        self.log.append("streams ended")

    async def close(self) -> None:
        self.log.append("closed")


class Console:
    def __init__(self, folder: Path, **rules: Any) -> None:
        self.logins, self.api = Logins(FakeClock()), FakeApi()
        gate = AccessControl(AccessRules(**rules), None, self.logins)
        self.endpoint = ConsoleApp(gate, self.logins, self.api, Assets(a_page_folder(folder)))

    def cookie(self, principal: str = "ada") -> dict[str, str]:
        return {"cookie": f"emceepee_8080={self.logins.begin(principal)}", **OURS}

    async def ask(self, method: str, path: str, *, body: str = "", query: str = "", **headers: str) -> Answered:
        answered = Answered()

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body.encode()}

        given = raw_headers({"host": HOST, **headers})
        assert await self.endpoint.serve(asked(method, path, query), given, receive, answered.send)
        return answered


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return Console(tmp_path, tokens={"sesame": "bob"})


# Access control.


async def test_every_console_route_except_the_open_ones_requires_a_login(console: Console) -> None:
    """Tried without a cookie, with a wrong one, and with a valid one that another site made the browser send."""
    right = console.cookie()["cookie"]
    strangers = [{}, {"cookie": "emceepee_8080=x", **OURS}, {"cookie": right, "sec_fetch_site": "same-site"}]
    closed = [route for route in console.endpoint.routes if not route.is_open]
    assert {route.path for route in closed} == {"/waterfall/json", "/console/answer", "/console/fails"}
    for route in closed:
        for stranger in strangers:
            answered = await console.ask(route.method, route.path, body="{}", **JSON, **stranger)
            assert (answered.status, answered.error["code"]) == (401, "ERR_NOT_LOGGED_IN"), (route.path, stranger)


def test_only_the_console_page_its_assets_and_the_login_are_open(console: Console) -> None:
    is_open = {(route.method, route.path) for route in console.endpoint.routes if route.is_open}
    files = {(method, path) for method, path in is_open if path.startswith("/console/assets/")}
    pages = {(method, path) for method in ("GET", "HEAD") for path in ("/", "/waterfall")}
    login = {("GET", "/console/login"), ("POST", "/console/login"), ("POST", "/console/logout")}
    assert is_open == files | pages | login


async def test_a_login_or_a_token_opens_every_console_route_for_its_principal(console: Console) -> None:
    for proof, principal in ((console.cookie(), "ada"), ({"authorization": "Bearer sesame"}, "bob")):
        answered = await console.ask("GET", "/waterfall/json", query="session=a%20b&id=", **proof)
        assert json.loads(answered.body) == {"principal": principal, "query": {"session": "a b", "id": ""}}
        answered = await console.ask("POST", "/console/answer", body='{"a":1}', **JSON, **proof)
        assert json.loads(answered.body) == {"a": 1}


async def test_the_console_page_redirects_to_the_login(console: Console) -> None:
    for path in ("/", "/waterfall"):
        answered = await console.ask("GET", path)
        assert (answered.status, answered.headers["location"]) == (303, "/console/login")
        assert (await console.ask("GET", path, **console.cookie())).status == 200


async def test_a_link_from_another_site_opens_the_console_page(console: Console) -> None:
    """The browser withholds the cookie for such a request, even if the person is logged in."""
    answered = await console.ask("GET", "/", sec_fetch_site="cross-site", sec_fetch_mode="navigate")
    assert answered.status == 200


@given(
    query=text(),
    cookie=binary(max_size=200),
    kind=sampled_from(["application/json", "application/x-www-form-urlencoded", ""]),
    body=binary(max_size=200),
)
async def test_console_requests_of_strangers_never_fail_internally_or_get_access(
    tmp_path_factory: pytest.TempPathFactory, query: str, cookie: bytes, kind: str, body: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp() / "page of strangers"
    folder.mkdir(exist_ok=True)
    console = Console(folder)
    for route in console.endpoint.routes:
        answered = await console.ask(
            *(route.method, route.path),
            body=body.decode("latin-1"),
            query=f"code={quote(query, errors='replace')}&{quote(query, errors='replace')}",
            cookie=f"emceepee_8080={cookie.decode('latin-1')}",
            content_type=kind,
            **OURS,
        )
        assert answered.status in ((200, 303, 400, 403) if route.is_open else (401,)), route.path
        assert "set-cookie" not in answered.headers or "Max-Age=0" in answered.headers["set-cookie"]


# Responses.


async def test_every_console_response_has_security_headers(console: Console) -> None:
    cookie = console.cookie()
    answers = [
        await console.ask("GET", "/", **cookie),
        await console.ask("GET", "/console/login"),
        await console.ask("GET", "/console/login", query="code=wrong"),
        await console.ask("GET", "/waterfall/json"),
        await console.ask("GET", "/waterfall/json", **cookie),
        await console.ask("DELETE", "/"),
        await console.ask("POST", "/console/logout"),
    ]
    for answered in answers:
        assert GUARDING.items() <= answered.headers.items()
        assert answered.headers["cache-control"] == "no-store"
        assert "permissions-policy" in answered.headers


async def test_console_pages_load_nothing_from_elsewhere_and_cannot_be_framed(console: Console) -> None:
    for answered in (await console.ask("GET", "/", **console.cookie()), await console.ask("GET", "/console/login")):
        assert answered.headers["content-type"] == "text/html; charset=utf-8"
        policy = answered.headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
        assert answered.headers["referrer-policy"] == "same-origin"
        assert b"{{" not in answered.body


async def test_console_assets_are_cached_and_have_security_headers(console: Console) -> None:
    path = next(route.path for route in console.endpoint.routes if route.path.endswith("main.js"))
    answered = await console.ask("GET", path)
    assert answered.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert GUARDING.items() <= answered.headers.items()


async def test_an_unknown_console_path_is_not_served(console: Console) -> None:
    answered = Answered()
    paths = ["/mcp", "/console", "/console/", "//", "/console/assets/0000/main.js", "/console/login/", "/index.html"]
    for path in paths:
        assert not await console.endpoint.serve(asked("GET", path), {}, hung_up, answered.send)
    assert answered == Answered()


async def test_a_wrong_console_method_gets_405_with_the_allowed_ones(console: Console) -> None:
    answered = await console.ask("POST", "/waterfall/json")
    assert (answered.status, answered.headers["allow"]) == (405, "GET")
    assert (await console.ask("PUT", "/console/login")).headers["allow"] == "GET, POST"


@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded"])
async def test_the_console_accepts_only_json_bodies(console: Console, kind: str) -> None:
    answered = await console.ask("POST", "/console/answer", body="{}", content_type=kind, **console.cookie())
    assert answered.status == 415


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidArguments("no"), 400),
        (NotAllowed("no"), 403),
        (EmceepeeError("no", code=ErrorCode.LIMIT_EXCEEDED), 429),
        (TimedOut("no"), 504),
        (BackendDisconnected("no"), 502),
        (EmceepeeError("no"), 502),
        *((EmceepeeError("no", code=code), 404) for code in ErrorCode if code.endswith("NOT_FOUND")),
    ],
)
async def test_a_console_error_for_the_caller_is_returned_with_its_code(
    console: Console, error: EmceepeeError, status: int
) -> None:
    console.api.fails = raising(error)
    answered = await console.ask("GET", "/console/fails", **console.cookie())
    assert (answered.status, answered.error) == (status, {"code": str(error.code), "message": "no"})


async def test_console_errors_include_their_details(console: Console) -> None:
    problem = {"field": "age", "code": "minimum", "message": "too small"}
    console.api.fails = raising(InvalidArguments("no", details={"problems": [problem]}))
    answered = await console.ask("GET", "/console/fails", **console.cookie())
    assert answered.error["details"] == {"problems": [problem]}


async def test_an_internal_console_error_is_returned_without_details_and_logged_in_full(
    console: Console, caplog: pytest.LogCaptureFixture
) -> None:
    console.api.fails = raising(ZeroDivisionError("a secret"))
    with caplog.at_level(logging.ERROR):
        answered = await console.ask("GET", "/console/fails", **console.cookie())
    assert (answered.status, answered.error["code"]) == (500, "ERR_INTERNAL")
    assert b"secret" not in answered.body
    assert "ZeroDivisionError: a secret" in caplog.text


@pytest.mark.parametrize("error", [CallerLeft(), InvalidArguments("late")])
async def test_a_console_client_that_left_or_has_part_of_a_response_gets_no_more(
    console: Console, error: Exception
) -> None:
    console.api.fails, console.api.has_begun = raising(error), True
    answered = await console.ask("GET", "/console/fails", **console.cookie())
    assert (answered.status, answered.body, answered.is_whole) == (200, b"", False)


async def test_a_console_query_with_too_many_parameters_is_treated_as_empty(console: Console) -> None:
    answered = await console.ask("GET", "/waterfall/json", query="&".join("a=1" for _ in range(50)), **console.cookie())
    assert json.loads(answered.body)["query"] == {}


# Shutdown.


async def test_a_draining_console_ends_its_streams_and_refuses_new_requests(console: Console) -> None:
    console.endpoint.drain()
    assert console.api.log == ["streams ended"]
    assert (await console.ask("GET", "/", **console.cookie())).status == 503
    assert (await console.ask("GET", "/waterfall/json")).error["code"] == "ERR_SHUTTING_DOWN"
    await console.endpoint.close()
    assert console.api.log == ["streams ended", "closed"]


def raising(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


# Requests of another replica, which has authenticated the principal.


async def serve_peer(console: Console, method: str, path: str, body: bytes = b"") -> Answered | None:
    """Return the response to another replica, or None if the request was not served."""
    answered, scope = Answered(), asked(method, path, "a=1")
    if await console.endpoint.serve_peer(scope, body, hung_up, answered.send, principal="ada"):
        assert answered.is_whole
        return answered
    assert answered.status == 0
    return None


async def test_the_console_serves_another_replica_what_its_principal_may_see(console: Console) -> None:
    answered = await serve_peer(console, "GET", "/waterfall/json")
    assert answered is not None
    assert json.loads(answered.body) == {"principal": "ada", "query": {"a": "1"}}
    answered = await serve_peer(console, "POST", "/console/answer", b'{"session":"s"}')
    assert answered is not None
    assert (answered.status, json.loads(answered.body)) == (200, {"session": "s"})


async def test_the_console_serves_no_page_and_no_login_to_another_replica(console: Console) -> None:
    for route in console.endpoint.routes:
        if route.is_open:
            assert await serve_peer(console, route.method, route.path) is None
    for method, path in (("GET", "/nothing"), ("DELETE", "/waterfall/json")):
        assert await serve_peer(console, method, path) is None


async def test_the_console_reports_a_missing_session_to_another_replica_apart_from_other_errors(
    console: Console,
) -> None:
    def not_here() -> None:
        raise SessionNotHere

    def wrong() -> None:
        raise InvalidArguments("Not so.")

    console.api.fails = not_here
    assert await serve_peer(console, "GET", "/console/fails") is None
    assert (await console.ask("GET", "/console/fails", **console.cookie())).status == 404
    console.api.fails = wrong
    answered = await serve_peer(console, "GET", "/console/fails")
    assert answered is not None
    assert (answered.status, answered.error["message"]) == (400, "Not so.")


async def test_a_stopping_console_serves_no_other_replica(console: Console) -> None:
    console.endpoint.drain()
    assert await serve_peer(console, "GET", "/waterfall/json") is None
