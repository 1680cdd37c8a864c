"""An authorization server on this machine, and the MCP server at `/mcp` that wants its tokens.

Opening the address of a login grants it. Refresh tokens rotate, and using one twice revokes all tokens of its
login. Nothing here knows emceepee.
"""

import asyncio
import hashlib
import itertools
import ssl
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlencode

from aiohttp import web

from support.system.web_application import running_application

PATIENCE = 20.0
OF_THE_SERVER = ("/mcp", "/sse", "/messages", "/.well-known/oauth-protected-resource/")
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Form:
    """A request to the token endpoint, and its headers."""

    fields: dict[str, str]
    headers: dict[str, str]


@dataclass
class AuthorizationServer:
    """`forms` is what the token endpoint was asked; `valid` are the access tokens that the server behind takes."""

    url: str = ""  # it is the issuer
    server_url: str = ""  # where the server behind is, if its origin is another
    port: int = 0
    lives: int = 3600
    holds_calls: bool = False  # while it is set, calls that ran are not answered
    uses: int | None = None  # calls after which an access token is rejected, even before it expires
    status: int = 200  # of the token endpoint, while it is in trouble
    broken: int | None = None  # the status of all endpoints of the authorization server, while it is in trouble
    is_silent: bool = False  # while it is set, none of them answers
    challenge_methods: list[str] | None = field(default_factory=lambda: ["S256"])
    is_approved: bool = False  # the device code was entered
    page: str | None = None  # the authorization endpoint that the metadata names, if it is at another site
    sends_on_to: str | None = None  # where it sends browsers instead of asking the person
    answer_changes: dict[str, str | None] = field(default_factory=dict)  # of what browsers bring back; None: left out
    refuses_codes: bool = False
    nonce: str | None = None  # that a proof must have
    forms: list[Form] = field(default_factory=list)
    registrations: list[dict[str, Any]] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)
    valid: set[str] = field(default_factory=set)
    needed: dict[str, str] = field(default_factory=dict)  # the scope that a tool wants
    scopes: dict[str, set[str]] = field(default_factory=dict)  # by access token
    calls: list[tuple[str, str]] = field(default_factory=list)  # of tools that ran: the token, the name
    arrived: list[str] = field(default_factory=list)  # the tokens of all tool calls, with any outcome
    verdict: Callable[[str], web.Response | None] = lambda _: None  # an answer to a call with that token, if no result
    peers: dict[str, set[tuple[str, int]]] = field(default_factory=dict)  # by token: the connections it came over
    asked: int = 0  # how often someone was shown the page to agree on
    answered: int = 0  # token requests
    refusals: int = 0  # requests that were not let in
    replayed: int = 0  # refresh tokens that were used twice
    held: asyncio.Event = field(default_factory=asyncio.Event)  # while it is set, token requests wait
    held_back: asyncio.Event = field(default_factory=asyncio.Event)  # or only their answers: what they ask is done
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)
    _redirects: dict[str, list[str]] = field(default_factory=dict)  # by client id
    _refresh: dict[str, int] = field(default_factory=dict)  # good ones, and the login that they came of
    _spent: dict[str, int] = field(default_factory=dict)
    _logins: dict[str, int] = field(default_factory=dict)  # of access tokens
    _used: Counter[str] = field(default_factory=Counter)
    _granted: str = ""
    _answers: "asyncio.Queue[bytes | None]" = field(default_factory=asyncio.Queue)
    numbers: Iterator[int] = field(default_factory=itertools.count)  # of clients and codes

    @property
    def resource(self) -> str:
        return f"{self.server_url or self.url}/mcp"

    async def resource_metadata(self, request: web.Request) -> web.Response:
        return web.json_response({"resource": self.resource, "authorization_servers": [self.url]})

    async def metadata(self, request: web.Request) -> web.Response:
        endpoints = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "registration_endpoint": "register",
            "revocation_endpoint": "revoke",
            "device_authorization_endpoint": "device",
        }
        pkce = {} if self.challenge_methods is None else {"code_challenge_methods_supported": self.challenge_methods}
        return web.json_response(
            {
                "issuer": self.url,
                **pkce,
                "token_endpoint_auth_methods_supported": ["none"],
                **{name: f"{self.url}/{path}" for name, path in endpoints.items()},
                **({} if self.page is None else {"authorization_endpoint": self.page}),
            }
        )

    @web.middleware
    async def be_in_trouble(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Fail requests as planned, except those to the MCP server and its metadata."""
        if not request.path.startswith(OF_THE_SERVER):
            if self.is_silent:
                await asyncio.wait_for(self.go_on.wait(), PATIENCE)
            if self.broken is not None:
                return web.Response(status=self.broken)
        return await handler(request)

    async def register(self, request: web.Request) -> web.Response:
        document = await request.json()
        self.registrations.append(document)
        client_id = f"client-{next(self.numbers)}"
        self._redirects[client_id] = document["redirect_uris"]
        return web.json_response(document | {"client_id": client_id}, status=201)

    async def authorize(self, request: web.Request) -> web.Response:
        if self.sends_on_to is not None:
            raise web.HTTPFound(f"{self.sends_on_to}&{urlencode(self._stolen(request))}")
        known = self._redirects.get(request.query["client_id"])
        if known is not None and request.query["redirect_uri"] not in known:
            return web.Response(status=400, text="This client has another redirect address")
        self.asked += 1
        code = f"code-{next(self.numbers)}"
        self._codes[code] = dict(request.query)
        answer: dict[str, str | None] = {"code": code, "state": request.query["state"], "iss": self.url}
        told = {name: value for name, value in (answer | self.answer_changes).items() if value is not None}
        raise web.HTTPFound(f"{request.query['redirect_uri']}?{urlencode(told)}")

    def _stolen(self, request: web.Request) -> dict[str, str]:
        """Return the parameters with which another authorization server's answer fits this login."""
        names = ("response_type", "state", "code_challenge", "code_challenge_method", "resource")
        return {name: request.query[name] for name in names}

    async def device(self, request: web.Request) -> web.Response:
        code = f"device-{next(self.numbers)}"
        address = {"verification_uri": f"{self.url}/enter", "expires_in": 600, "interval": 1}
        return web.json_response({"device_code": code, "user_code": "ABCD-EFGH", **address})

    async def token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.forms.append(Form(form, {name.lower(): value for name, value in request.headers.items()}))
        status = self.status
        if self.held.is_set():
            await asyncio.wait_for(self.go_on.wait(), PATIENCE)
        answer = self._token_answer(request, form) if status == 200 else web.Response(status=status)
        if self.held_back.is_set():
            await asyncio.wait_for(self.go_on.wait(), PATIENCE)
        self.answered += 1
        return answer

    def _token_answer(self, request: web.Request, form: dict[str, str]) -> web.Response:
        if self.nonce is not None and self.nonce not in _nonce(request.headers.get("dpop", "")):
            return web.json_response({"error": "use_dpop_nonce"}, status=400, headers={"DPoP-Nonce": self.nonce})
        if (error := self._refusal(form)) is not None:
            return web.json_response({"error": error}, status=400)
        login = self._spent.get(form.get("refresh_token", ""))
        return web.json_response(self.issue(is_bound="dpop" in request.headers, scope=self._granted, login=login))

    async def revoke(self, request: web.Request) -> web.Response:
        token = str((await request.post())["token"])
        self.revoked.append(token)
        self.valid.discard(token)
        self._refresh.pop(token, None)
        return web.Response()

    def _refusal(self, form: dict[str, str]) -> str | None:
        match form["grant_type"]:
            case "authorization_code":
                asked = self._codes.pop(form["code"], None)
                if self.refuses_codes or asked is None or _challenge(form["code_verifier"]) != asked["code_challenge"]:
                    return "invalid_grant"
                self._granted = asked.get("scope", "")
                same = all(form[name] == asked[name] for name in ("client_id", "redirect_uri", "resource"))
                return None if same else "invalid_grant"
            case "refresh_token":
                return self._spend(form["refresh_token"])
            case "urn:ietf:params:oauth:grant-type:device_code":
                return None if self.is_approved else "authorization_pending"
            case "client_credentials":
                return None
        return "unsupported_grant_type"

    def _spend(self, refresh_token: str) -> str | None:
        if (login := self._refresh.pop(refresh_token, None)) is not None:
            self._spent[refresh_token] = login
            return None
        self.replayed += 1
        if (login := self._spent.get(refresh_token)) is not None:
            self._refresh = {token: of for token, of in self._refresh.items() if of != login}
            self.valid -= {token for token, of in self._logins.items() if of == login}
        return "invalid_grant"

    async def mcp(self, request: web.Request) -> web.StreamResponse:
        """The server: 2025-11-25, without a session. Its tools repeat their names."""
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        token = request.headers.get("authorization", "").partition(" ")[2]
        if message["method"] == "tools/call":
            self.arrived.append(token)
            if (answer := self.verdict(token)) is not None:
                return answer
        if token not in self.valid:
            return self.not_let_in(401, "")
        assert request.transport is not None
        self.peers.setdefault(token, set()).add(request.transport.get_extra_info("peername"))
        params = message.get("params", {})
        if (scope := self.needed.get(params.get("name", ""))) and scope not in self.scopes.get(token, ()):
            return self.not_let_in(403, f', error="insufficient_scope", scope="{scope}"')
        result: dict[str, Any]
        match message["method"]:
            case "initialize":
                info = {"name": "protected", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "write")]}
            case "tools/call":
                self.calls.append((token, params["name"]))
                self._used[token] += 1
                if self._used[token] == self.uses:
                    self.valid.discard(token)
                if self.holds_calls:
                    await asyncio.wait_for(self.go_on.wait(), PATIENCE)
                result = {"content": [{"type": "text", "text": params["name"]}]}
            case _ if "id" in message:
                error = {"code": -32601, "message": "no such method"}
                return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
            case _:
                return web.Response(status=202)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def sse(self, request: web.Request) -> web.StreamResponse:
        """Serve the older transport: answers to messages posted to `/messages` arrive in this stream."""
        if request.headers.get("authorization", "").partition(" ")[2] not in self.valid:
            return self.not_let_in(401, "", path="sse")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"event: endpoint\ndata: /messages\n\n")
        self._answers = asyncio.Queue()
        while (answer := await self._answers.get()) is not None:
            await response.write(b"event: message\ndata: " + answer + b"\n\n")
        return response

    def end_stream(self) -> None:
        """End the open stream of the SSE transport."""
        self._answers.put_nowait(None)

    async def messages(self, request: web.Request) -> web.StreamResponse:
        answered = await self.mcp(request)
        if answered.status == 200 and isinstance(answered, web.Response) and isinstance(answered.body, bytes):
            self._answers.put_nowait(answered.body)
            return web.Response(status=202)
        return answered

    async def sse_metadata(self, request: web.Request) -> web.Response:
        return web.json_response({"resource": f"{self.url}/sse", "authorization_servers": [self.url]})

    @property
    def secrets(self) -> set[str]:
        """Everything that was given away or shown here and that nobody else may see."""
        shown = {form.fields[name] for form in self.forms for name in ("code", "code_verifier") if name in form.fields}
        return shown | set(self.scopes) | {f"refresh-{token.partition('-')[2]}" for token in self.scopes}

    def not_let_in(self, status: int, more: str, *, path: str = "mcp") -> web.Response:
        self.refusals += 1
        place = f"{self.server_url or self.url}/.well-known/oauth-protected-resource/{path}"
        return web.Response(status=status, headers={"www-authenticate": f'Bearer resource_metadata="{place}"{more}'})

    def issue(self, *, is_bound: bool = False, scope: str = "", login: int | None = None) -> dict[str, Any]:
        number = next(self.numbers)
        access, refresh = f"access-{number}", f"refresh-{number}"
        self.valid.add(access)
        self.scopes[access] = set(scope.split())
        self._refresh[refresh] = self._logins[access] = number if login is None else login
        kind = "DPoP" if is_bound else "Bearer"
        return {"access_token": access, "token_type": kind, "expires_in": self.lives, "refresh_token": refresh}


ServerT = TypeVar("ServerT", bound=AuthorizationServer)


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _nonce(proof: str) -> str:
    import jwt

    return str(jwt.decode(proof, options={"verify_signature": False}).get("nonce")) if proof else ""


def an_authorization_server(
    *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", server_host: str | None = None
) -> AbstractAsyncContextManager[AuthorizationServer]:
    """On a free port. The hosts are names that lead here; `server_host` is that of the server behind."""
    return serving(AuthorizationServer(), tls=tls, host=host, server_host=server_host)


@asynccontextmanager
async def serving(
    server: ServerT, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1", server_host: str | None = None
) -> AsyncIterator[ServerT]:
    app = web.Application(middlewares=[server.be_in_trouble])
    app.router.add_get("/.well-known/oauth-protected-resource/mcp", server.resource_metadata)
    app.router.add_get("/.well-known/oauth-authorization-server", server.metadata)
    app.router.add_post("/register", server.register)
    app.router.add_get("/authorize", server.authorize)
    app.router.add_post("/device", server.device)
    app.router.add_post("/token", server.token)
    app.router.add_post("/revoke", server.revoke)
    app.router.add_route("*", "/mcp", server.mcp)
    app.router.add_get("/.well-known/oauth-protected-resource/sse", server.sse_metadata)
    app.router.add_get("/sse", server.sse)
    app.router.add_post("/messages", server.messages)
    async with running_application(app, tls=tls) as server.port:
        scheme = "http" if tls is None else "https"
        server.url = f"{scheme}://{host}:{server.port}"
        server.server_url = f"{scheme}://{server_host or host}:{server.port}"
        try:
            yield server
        finally:
            server.end_stream()
