"""Follows a server's redirects within its origin. Errors for other redirects advise changing the configured address.

A request may carry a credential, which is valid for one origin only.
"""

from collections.abc import Mapping
from urllib.parse import urlsplit

from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.origin import join
from emceepee.backends.http1.response import HttpResponse
from emceepee.telemetry.redaction import public_place

MOST_REDIRECTS = 3  # per request
SHOWN_CHARS = 300
_KEEP_METHOD = frozenset({307, 308})
REDIRECTS = {"POST": _KEEP_METHOD, "GET": _KEEP_METHOD | {301, 302, 303}}  # the statuses to follow


def follow(http: HttpClient, response: HttpResponse) -> HttpClient | None:
    """Return the client for a redirect's target, or None if that is invalid or another origin."""
    location = response.headers.get("location")
    if not location:
        return None
    try:
        return http.at(location)
    except ValueError:
        return None


async def send(
    http: HttpClient, method: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> tuple[HttpClient, HttpResponse]:
    """Send a request and follow redirects. Return the client for the final address, and the response.

    Raises: HttpFailure, ValueError.
    """
    for _ in range(MOST_REDIRECTS):
        response = await http.request(method, body, headers)
        moved = follow(http, response) if response.status in REDIRECTS[method] else None
        if moved is None:
            return http, response
        response.discard()
        http = moved
    return http, await http.request(method, body, headers)


def redirect_words(url: str, response: HttpResponse, method: str = "POST") -> str:
    """Return advice about a redirect of the server at `url` that was not followed."""
    location = response.headers.get("location", "")
    try:
        place = join(url, location) if location else ""
    except ValueError:
        place = ""
    if not place:
        return "redirects without an address; ask the server's operator for its current address"
    place = _without_downgrade(url, place)
    shown = "".join(letter for letter in public_place(place)[:SHOWN_CHARS] if letter.isprintable())
    if response.status in REDIRECTS[method] and _origin(place) == _origin(url):
        return f"redirects too often, most recently to {shown}; use another address as its url"
    return f"redirects to {shown}, and is not followed there; if that is the server, use that address as its url"


def _without_downgrade(url: str, place: str) -> str:
    """Restore HTTPS in a redirect: behind a proxy that adds TLS, many servers do not know that they use it."""
    ours, theirs = urlsplit(url), urlsplit(place)
    is_downgrade = (ours.scheme, theirs.scheme) == ("https", "http") and ours.hostname == theirs.hostname
    return theirs._replace(scheme="https", netloc=ours.netloc).geturl() if is_downgrade else place


def _origin(url: str) -> tuple[str, str]:
    return urlsplit(url)[:2]
