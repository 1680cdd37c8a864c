"""The console as an HTTP application: its routes, their access control, and the mapping of errors to responses."""

import logging
from dataclasses import replace
from typing import Protocol
from urllib.parse import parse_qsl

from emceepee.console.assets import Assets, respond_page
from emceepee.console.console_login import LOGIN_PATH, ConsoleLoginPages, redirect
from emceepee.console.console_request import ConsoleRequest, Route
from emceepee.console.other_sessions import SessionNotHere
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.guard.access_control import AccessControl
from emceepee.guard.caller_identity import Rejection
from emceepee.guard.logins import Logins
from emceepee.web.asgi import CallerLeft, Header, Headers, Receive, Scope, Send, is_json, respond_json
from emceepee.wire.json_types import JsonObject

logger = logging.getLogger(__name__)
PAGES = ("/", "/waterfall")
MOST_QUERY_FIELDS = 20
NOT_LOGGED_IN, INTERNAL, SHUTTING_DOWN = "ERR_NOT_LOGGED_IN", "ERR_INTERNAL", "ERR_SHUTTING_DOWN"
# For responses that do not set the header themselves.
SECURITY_HEADERS: tuple[Header, ...] = (
    (b"cache-control", b"no-store"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
)
STATUSES = {
    ErrorCode.INVALID_ARGUMENTS: 400,
    ErrorCode.NOT_ALLOWED: 403,
    ErrorCode.SESSION_NOT_FOUND: 404,
    ErrorCode.SERVER_NOT_FOUND: 404,
    ErrorCode.TOOL_NOT_FOUND: 404,
    ErrorCode.TASK_NOT_FOUND: 404,
    ErrorCode.REQUEST_NOT_FOUND: 404,
    ErrorCode.TIMER_NOT_FOUND: 404,
    ErrorCode.RESULT_NOT_FOUND: 404,
    ErrorCode.LIMIT_EXCEEDED: 429,
    ErrorCode.TIMEOUT: 504,
}
OTHER_STATUS = 502  # a called server failed


class RouteProvider(Protocol):
    """The data routes of the page, for logged-in users only."""

    def routes(self) -> tuple[Route, ...]: ...

    def end_streams(self) -> None: ...

    def end_stale_streams(self) -> None:
        """End the streams whose readers are no longer logged in."""
        ...

    async def close(self) -> None: ...


class ConsoleApp:
    """Serves the routes in its table."""

    def __init__(self, gate: AccessControl, logins: Logins, api: RouteProvider, assets: Assets) -> None:
        self._gate, self._api, self._assets = gate, api, assets
        self._is_draining = False
        logins.watch_ends(api.end_stale_streams)
        pages = (Route(method, path, self._page, is_open=True) for path in PAGES for method in ("GET", "HEAD"))
        self.routes = (*pages, *ConsoleLoginPages(gate, logins, assets).routes(), *assets.routes(), *api.routes())
        self._table: dict[str, dict[str, Route]] = {}
        for route in self.routes:
            self._table.setdefault(route.path, {})[route.method] = route

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> bool:
        """Serve the request. Return False if the path is unknown."""
        methods = self._table.get(scope["path"])
        if methods is None:
            return False
        answer = _Answer(send)
        route = methods.get(scope["method"])
        if self._is_draining:
            await answer.refuse(503, SHUTTING_DOWN, "The server is shutting down.", (b"retry-after", b"1"))
        elif route is None:
            words, allowed = "This cannot be done here.", ", ".join(sorted(methods))
            await answer.refuse(405, ErrorCode.INVALID_ARGUMENTS, words, (b"allow", allowed.encode()))
        elif route.is_open:
            principal = await self._gate.find_login(headers, method=route.method)
            await self._serve_route(route, _request_of(scope, headers, receive, answer, principal), answer)
        else:
            await self._admit(route, scope, headers, receive, answer)
        return True

    async def serve_peer(self, scope: Scope, body: bytes, receive: Receive, send: Send, *, principal: str) -> bool:
        """Serve another replica, which has authenticated the principal.

        Return False, with no side effects, if the route or session is not served here.
        """
        route = self._table.get(scope["path"], {}).get(scope["method"])
        if self._is_draining or route is None or route.is_open:
            return False
        answer = _Answer(send)
        request = _request_of(scope, dict(scope["headers"]), _with_body(body, receive), answer, principal)
        try:
            await self._serve_route(route, replace(request, is_from_peer=True), answer)
        except SessionNotHere:
            return False
        return True

    def drain(self) -> None:
        """Reject new requests and end the streams."""
        self._is_draining = True
        self._api.end_streams()

    async def close(self) -> None:
        await self._api.close()

    async def _admit(self, route: Route, scope: Scope, headers: Headers, receive: Receive, answer: "_Answer") -> None:
        method = route.method
        principal = await self._gate.admit_to_console(headers, _peer(scope), method=method)
        if isinstance(principal, Rejection):
            code = NOT_LOGGED_IN if principal.status == 401 else ErrorCode.NOT_ALLOWED
            await answer.refuse(principal.status, code, principal.message, *principal.headers)
        elif method == "POST" and not is_json(headers):
            await answer.refuse(415, ErrorCode.INVALID_ARGUMENTS, "Send application/json.")
        else:
            request = _request_of(scope, headers, receive, answer, principal)
            if self._gate.logged_in(headers, method=method) is not None:  # a token stays valid for the whole request
                request = replace(
                    request, is_logged_in=lambda: self._gate.logged_in(headers, method=method) is not None
                )
            await self._serve_route(route, request, answer)

    async def _serve_route(self, route: Route, request: ConsoleRequest, answer: "_Answer") -> None:
        """Serve a route and turn its errors into responses. Raises: SessionNotHere, for another replica only."""
        try:
            await route.serve(request)
        except CallerLeft:
            pass
        except EmceepeeError as error:
            if request.is_from_peer and isinstance(error, SessionNotHere):
                raise
            await answer.fail(STATUSES.get(error.code, OTHER_STATUS), _error_body(error))
        except Exception:
            logger.exception("%s %s failed", route.method, route.path)
            await answer.refuse(500, INTERNAL, "This failed inside emceepee; its log says more.")

    async def _page(self, request: ConsoleRequest) -> None:
        """Serve the page, which contains no user data.

        A visitor who follows a link from another site may be logged in: the browser withholds the cookie until the page
        itself sends a request.
        """
        if request.principal is None and request.headers.get(b"sec-fetch-site") != b"cross-site":
            await redirect(request, LOGIN_PATH)
        else:
            await respond_page(request.send, 200, self._assets.page("index.html"))


class _Answer:
    """One response: it adds the security headers and starts at most once."""

    def __init__(self, send: Send) -> None:
        self._send, self._is_begun = send, False

    async def send(self, message: JsonObject) -> None:
        if message["type"] == "http.response.start":
            self._is_begun = True
            present = {name for name, _ in message["headers"]}
            missing = [header for header in SECURITY_HEADERS if header[0] not in present]
            message = message | {"headers": [*message["headers"], *missing]}
        await self._send(message)

    async def refuse(self, status: int, code: str, words: str, *headers: Header) -> None:
        await self.fail(status, {"code": str(code), "message": words}, *headers)

    async def fail(self, status: int, error: JsonObject, *headers: Header) -> None:
        if not self._is_begun:  # otherwise the response stays truncated, and the HTTP server closes the connection
            await respond_json(self.send, status, {"error": error}, *headers)


def _request_of(
    scope: Scope, headers: Headers, receive: Receive, answer: _Answer, principal: str | None
) -> ConsoleRequest:
    text = scope.get("query_string", b"").decode("latin-1")
    try:
        query = dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_QUERY_FIELDS))
    except ValueError:
        query = {}  # more fields than any page of the console sends
    return ConsoleRequest(
        principal=principal,
        path=scope["path"],
        query=query,
        headers=headers,
        receive=receive,
        send=answer.send,
        peer=_peer(scope),
    )


def _with_body(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that replays a body that was already read."""
    parts = [{"type": "http.request", "body": body}]

    async def receive_again() -> JsonObject:
        return parts.pop() if parts else await receive()

    return receive_again


def _peer(scope: Scope) -> str | None:
    client = scope.get("client")
    return client[0] if client else None


def _error_body(error: EmceepeeError) -> JsonObject:
    return {key: value for key, value in error.body().items() if key != "details" or value}
