"""A small authorization server on this machine: it publishes one key and signs what the test asks for."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import jwt
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec

from support.system.web_application import running_application


class Issuer:
    """`token` makes one; `rotate` replaces the key."""

    def __init__(self) -> None:
        self.url = ""
        self.is_down = False
        self.fetches = 0
        self.named: str | None = None  # in its metadata, if not itself
        self.redirects = False  # whether the keys are elsewhere
        self.padding = 0  # bytes besides the key
        self.about_key: dict[str, Any] = {"use": "sig", "alg": "ES256"}
        self.is_slow = asyncio.Event()  # while it is set, requests for keys wait
        self.go_on = asyncio.Event()
        self._numbers = itertools.count(1)
        self.rotate()

    def rotate(self) -> None:
        self._key, self._key_id = ec.generate_private_key(ec.SECP256R1()), f"key-{next(self._numbers)}"

    def token(self, *, algorithm: str = "ES256", key: Any = None, kid: str | None = None, **claims: Any) -> str:
        expiry = datetime.now(UTC) + timedelta(minutes=5)
        whole = {"iss": self.url, "sub": "ada", "exp": expiry, "scope": "mcp extra"} | claims
        kept = {name: value for name, value in whole.items() if value is not None}
        return jwt.encode(kept, key or self._key, algorithm=algorithm, headers={"kid": kid or self._key_id})

    async def metadata(self, request: web.Request) -> web.Response:
        keys = "elsewhere" if self.redirects else "keys"
        return web.json_response({"issuer": self.named or self.url, "jwks_uri": f"{self.url}/{keys}"})

    async def elsewhere(self, request: web.Request) -> web.Response:
        raise web.HTTPFound(f"{self.url}/keys")

    async def keys(self, request: web.Request) -> web.Response:
        if self.is_down:
            return web.Response(status=500)
        self.fetches += 1
        if self.is_slow.is_set():
            await asyncio.wait_for(self.go_on.wait(), 20)
        key = jwt.algorithms.ECAlgorithm.to_jwk(self._key.public_key(), as_dict=True)
        document = {"keys": [key | {"kid": self._key_id} | self.about_key], "padding": "x" * self.padding}
        return web.json_response(document)


@asynccontextmanager
async def an_issuer() -> AsyncIterator[Issuer]:
    """The issuer on a free port."""
    issuer = Issuer()
    application = web.Application()
    application.router.add_get("/realm/.well-known/openid-configuration", issuer.metadata)
    application.router.add_get("/realm/keys", issuer.keys)
    application.router.add_get("/realm/elsewhere", issuer.elsewhere)
    async with running_application(application) as port:
        issuer.url = f"http://127.0.0.1:{port}/realm"
        yield issuer
