import asyncio
from typing import cast

import pytest

from emceepee.backends.http.redirects import SHOWN_CHARS, redirect_words
from emceepee.backends.http1.response import BodySource, HttpResponse


async def redirect(location: str, status: int = 301) -> HttpResponse:
    response = HttpResponse(cast(BodySource, None), asyncio.get_running_loop().create_future())
    response.status, response.headers = status, {"location": location}
    return response


@pytest.mark.parametrize(
    ("location", "named"),
    [
        ("http://tracker.example/mcp/", "https://tracker.example/mcp/"),  # the server is unaware of its TLS
        ("http://other.example/mcp/", "http://other.example/mcp/"),
        ("/mcp/", "https://tracker.example/mcp/"),
    ],
)
async def test_a_redirect_that_drops_tls_is_reported_with_the_https_address(location: str, named: str) -> None:
    assert f"redirects to {named}, " in redirect_words("https://tracker.example/mcp", await redirect(location))


async def test_a_redirect_is_reported_without_the_keys_in_its_path() -> None:
    url = "https://tracker.example/s/kd8f7a6b5c4e3d2f/mcp"
    words = redirect_words(url, await redirect("https://other.example/s/kd8f7a6b5c4e3d2f/mcp"))
    assert "redirects to https://other.example/s/***/mcp, " in words


async def test_a_redirect_address_is_shown_shortened_and_on_one_line() -> None:
    words = redirect_words("https://tracker.example/", await redirect(f"/\x1b[31m\u2028{'x' * 10_000}"))
    assert words.isprintable()
    assert len(words) < SHOWN_CHARS + 150
