"""A caller that guesses tokens is slowed down. A caller with a valid token is not."""

import asyncio
import time

import aiohttp
import pytest

from support.callers.http_process import HELLO, HttpProcess, http_process
from support.console.http_browser import browser_for
from support.figures import record_figure
from support.waiting import eventually

RIGHT = "a-token-that-is-long-enough"
GUESSES = 10  # five at once, then 0.05, 0.1, 0.2, 0.4 and 0.8 s; from then on a second each
LEAST = 1.5  # seconds that those must take together, one after the other: 1.55
LONGEST = 1.0 + 0.5 * 5  # seconds that a right one may take, once, and with room for a busy machine


async def status(endpoint: HttpProcess, token: str) -> int:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    async with endpoint.http.post(endpoint.url, json=hello, headers={"authorization": f"Bearer {token}"}) as response:
        return response.status


async def test_wrong_tokens_are_delayed_increasingly_and_the_right_one_is_accepted() -> None:
    async with http_process("--token", RIGHT) as endpoint:
        began = time.monotonic()
        for number in range(GUESSES):
            assert await status(endpoint, f"guess-{number}") == 401
        took = time.monotonic() - began
        record_figure(f"{GUESSES} guesses one after the other took {took:.1f} s")
        assert took > LEAST
        guessing = [asyncio.create_task(status(endpoint, f"guess-{number}")) for number in range(100)]
        waits = []
        for _ in range(10):
            began = time.monotonic()
            assert await status(endpoint, RIGHT) == 200
            waits.append(time.monotonic() - began)
        record_figure(f"the right token took {waits[0]:.2f} s, and then {max(waits[1:]):.2f} s at most")
        assert waits[0] < LONGEST
        assert max(waits[1:]) < 0.5 * 5
        assert set(await asyncio.gather(*guessing)) == {401}
        said = [line for line in endpoint.log if "wrong_secrets" in line]
        assert len(said) == 1
        assert "peer=127.0.0.1" in said[0]


async def test_wrong_codes_and_tokens_at_the_login_are_delayed() -> None:
    async with http_process("--token", RIGHT) as endpoint, aiohttp.ClientSession() as http:
        browser = browser_for(http, f"{endpoint.origin}/console/login")
        began = time.monotonic()
        for number in range(GUESSES // 2):
            assert (await browser.open(f"{endpoint.origin}/console/login?code=guess-{number}")).status == 403
            assert (await browser.log_in_with(f"guess-{number}")).status == 403
        assert time.monotonic() - began > LEAST


@pytest.mark.parametrize(("token", "is_short"), [("sesame", True), ("bob=sesame", True), (RIGHT, False)])
async def test_a_short_token_causes_a_warning_at_the_start(token: str, *, is_short: bool) -> None:
    async with http_process("--token", token) as endpoint:
        if is_short:
            await eventually(lambda: any("token_too_short" in line for line in endpoint.log), what="the warning")
            assert "sesame" not in "".join(endpoint.log)
        assert await status(endpoint, token.rpartition("=")[2]) == 200
    assert any("token_too_short" in line for line in endpoint.log) == is_short
