"""Tokens are valid only with the issuer's intended signature, and invented key ids delay no other caller."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.callers.http_process import HELLO, HttpProcess, http_process
from support.figures import record_figure
from support.system.issuer import Issuer, an_issuer
from support.waiting import eventually

RESOURCE = "https://mcp.example/mcp"
LONGEST_WAIT = 0.5 * 5  # seconds, with room for a busy machine


@asynccontextmanager
async def guarded(**about_key: Any) -> AsyncIterator[tuple[Issuer, HttpProcess]]:
    async with (
        an_issuer() as issuer,
        http_process("--oauth-issuer", issuer.url, "--oauth-resource", RESOURCE) as endpoint,
    ):
        issuer.about_key = {key: value for key, value in (issuer.about_key | about_key).items() if value is not None}
        yield issuer, endpoint


async def status(endpoint: HttpProcess, token: str) -> int:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    async with endpoint.http.post(endpoint.url, json=hello, headers={"authorization": f"Bearer {token}"}) as response:
        return response.status


@pytest.mark.parametrize("about_key", [{"use": "enc"}, {"alg": "ES384"}], ids=str)
async def test_a_key_for_another_purpose_verifies_no_token(about_key: dict[str, Any]) -> None:
    async with guarded(**about_key) as (issuer, endpoint):
        assert await status(endpoint, issuer.token(aud=RESOURCE)) == 401


async def test_a_token_without_a_valid_signer_is_rejected() -> None:
    async with guarded(alg=None, use=None) as (issuer, endpoint):
        for subject in ("", "  "):
            assert await status(endpoint, issuer.token(aud=RESOURCE, sub=subject)) == 401
        assert await status(endpoint, issuer.token(aud=RESOURCE)) == 200


async def test_metadata_of_another_issuer_is_not_used() -> None:
    async with guarded() as (issuer, endpoint):
        issuer.named = "https://evil.example"
        assert await status(endpoint, issuer.token(aud=RESOURCE)) == 503
        assert issuer.fetches == 0


async def test_keys_are_not_fetched_through_a_redirect() -> None:
    async with guarded() as (issuer, endpoint):
        issuer.redirects = True
        assert await status(endpoint, issuer.token(aud=RESOURCE)) == 503
        assert issuer.fetches == 0


@pytest.mark.parametrize(("padding", "expected"), [(1_000_000, 200), (1 << 20, 503)])
async def test_a_key_set_over_the_size_limit_is_not_read(padding: int, expected: int) -> None:
    async with guarded() as (issuer, endpoint):
        issuer.padding = padding
        assert await status(endpoint, issuer.token(aud=RESOURCE)) == expected


async def test_an_unknown_key_id_delays_no_other_caller_and_is_rarely_looked_up() -> None:
    async with guarded() as (issuer, endpoint):
        good = issuer.token(aud=RESOURCE)
        assert await status(endpoint, good) == 200
        issuer.is_slow.set()
        made_up: list[asyncio.Task[int]] = []

        def is_asked_for() -> bool:
            made_up.append(asyncio.create_task(status(endpoint, issuer.token(aud=RESOURCE, kid=f"no-{len(made_up)}"))))
            return issuer.fetches == 2

        await eventually(is_asked_for, what="the issuer is asked for what nobody knows")
        slowest = 0.0
        for _ in range(20):
            began = time.monotonic()
            assert await status(endpoint, good) == 200
            slowest = max(slowest, time.monotonic() - began)
        record_figure(f"while the issuer is silent, a known key is accepted within {slowest * 1000:.0f} ms")
        assert slowest < LONGEST_WAIT
        issuer.go_on.set()
        assert set(await asyncio.gather(*made_up)) == {401}
        assert issuer.fetches == 2
