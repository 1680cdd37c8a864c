"""Read the console feed of a running `emceepee serve` from the command line."""

import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple
from urllib.parse import urlsplit

from emceepee.paths import TOKEN_VARIABLE
from emceepee.wire.json_types import JsonObject

FEED_PATH, LOGIN_PATH = "/console/feed", "/console/login"
CONNECT_SECONDS = 10.0
SILENCE_SECONDS = 60.0  # much longer than the interval between pings
LONGEST_LINE = 64 << 20
_HINT = "Start one with `emceepee serve`, or specify its URL with --url"


class FeedLost(Exception):
    """The feed cannot be opened or broke off; the message describes what to do."""


class FeedFrame(NamedTuple):
    """One message of the feed."""

    name: str
    data: JsonObject


def read_feed(url: str, token: str | None, ca_bundle: str | None = None) -> Iterator[FeedFrame]:
    """Yield all frames until the feed ends. `url` may be the link to the console. Raises: FeedLost."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if parts.scheme not in ("http", "https") or not host:
        raise FeedLost(f"--url: expected an address such as http://127.0.0.1:8080, found {url!r}")
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    try:
        with closing(_connection(parts.scheme, host, port, ca_bundle)) as connection:
            headers = _credentials(connection, parts.path, parts.query, token)
            yield from _frames(connection, headers, place)
    except TimeoutError:
        raise FeedLost(f"{place} has stopped responding") from None
    except (OSError, http.client.HTTPException) as error:
        raise FeedLost(f"no emceepee answers at {place}: {error}. {_HINT}") from None


def _connection(scheme: str, host: str, port: int | None, ca_bundle: str | None) -> http.client.HTTPConnection:
    if scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=CONNECT_SECONDS)
    context = ssl.create_default_context()
    if ca_bundle is not None:
        context.load_verify_locations(ca_bundle)
    return http.client.HTTPSConnection(host, port, timeout=CONNECT_SECONDS, context=context)


def _credentials(connection: http.client.HTTPConnection, path: str, query: str, token: str | None) -> dict[str, str]:
    """Return headers with the token, or with the cookie that a console link is exchanged for."""
    if path == LOGIN_PATH and "code=" in query:
        connection.request("GET", f"{LOGIN_PATH}?{query}")
        answer = connection.getresponse()
        answer.read()
        cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
        if answer.status != 303 or not cookie:
            raise FeedLost("this console link was already used; the newest link is in the output of emceepee serve")
        return {"Cookie": cookie}
    token = token or os.environ.get(TOKEN_VARIABLE)
    if not token:
        return {}
    from emceepee.cli.serving_arguments import bare_token

    return {"Authorization": f"Bearer {bare_token(token)}"}


def _frames(connection: http.client.HTTPConnection, headers: dict[str, str], place: str) -> Iterator[FeedFrame]:
    connection.request("GET", FEED_PATH, headers=headers | {"Accept": "text/event-stream"})
    answer = connection.getresponse()
    if answer.status in (401, 403):
        raise FeedLost(
            f"{place} requires authentication: pass --token (or set {TOKEN_VARIABLE}), or pass the console link that "
            f"emceepee serve printed when it started as --url"
        )
    if answer.status != 200:
        raise FeedLost(f"{place} has no console (HTTP {answer.status}): serve it without --no-console")
    if isinstance(connection.sock, socket.socket):
        connection.sock.settimeout(SILENCE_SECONDS)
    name = ""
    while line := answer.readline(LONGEST_LINE):
        if line.startswith(b"event: "):
            name = line[7:].decode("utf-8", "replace").strip()
        elif line.startswith(b"data: "):
            try:
                data = json.loads(line[6:])
            except (ValueError, RecursionError):
                continue
            if isinstance(data, dict):
                yield FeedFrame(name, data)
