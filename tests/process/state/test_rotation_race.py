"""Eight processes share one refresh token that the authorization server accepts once and then replaces."""

import asyncio
import json
import sys
from collections import Counter
from datetime import timedelta
from pathlib import Path

import pytest

from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.clock import SystemClock
from emceepee.sessions.logins.token_repository import TokenRepository
from emceepee.sessions.secret_records import SecretRecords, ServerKey
from support.figures import record_figure
from support.programs.refreshing import PRINCIPAL, SERVER, open_store
from support.system.authorization_server import AuthorizationServer, an_authorization_server
from support.system.redis_server import RedisServer

PROCESSES, REFRESHES = 8, 1000
SECONDS = 100.0


async def put_first_tokens(place: str, server: AuthorizationServer) -> int:
    """As a login would; the number of the token."""
    issued, now = server.issue(), SystemClock().now()
    tokens = TokenSet(
        issuer=server.url,
        resource=server.resource,
        client=OAuthClient(client_id="me"),
        token_endpoint=f"{server.url}/token",
        access_token=issued["access_token"],
        refresh_token=issued["refresh_token"],
        issued_at=now,
        expires_at=now + timedelta(hours=1),
    )
    store = await open_store(place)
    try:
        repository = TokenRepository(SecretRecords(store, SystemClock()), SystemClock())
        await repository.save(ServerKey(PRINCIPAL, SERVER, server.resource), tokens)
    finally:
        await store.close()
    return int(tokens.access_token.rpartition("-")[2])


async def run(place: str, url: str, goal: int) -> Counter[str]:
    arguments = ["-m", "support.programs.refreshing", place, url, str(goal)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=Path(__file__).parents[2], stdout=asyncio.subprocess.PIPE
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), SECONDS)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    return Counter(json.loads(output))


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_a_rotating_refresh_token_is_never_used_twice(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The server never returns invalid_grant, so nobody has to log in again."""
    redis: RedisServer | None = request.getfixturevalue("redis") if kind == "redis" else None
    place = redis.url() if redis is not None else str(tmp_path / "state.db")
    async with an_authorization_server() as server:
        first = await put_first_tokens(place, server)
        began = SystemClock().monotonic()
        runs = [run(place, server.resource, first + REFRESHES) for _ in range(PROCESSES)]
        seen = await asyncio.gather(*runs)
        seconds = SystemClock().monotonic() - began
    total = sum(seen, Counter[str]())
    assert server.replayed == 0
    assert set(total) == {"TokenSet", "asked"}
    assert total["asked"] == len(server.forms) == REFRESHES
    record_figure(f"{REFRESHES} refreshes by {PROCESSES} processes on {kind} took {seconds:.1f} s")
