"""A browser that asks for the console, as far as a server can tell one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from support.callers.http_process import BOTH, HELLO, EventReader
from support.waiting import eventually

OPENING = {"sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
OWN = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}
LINK = re.compile(r"^emceepee console at (\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Seen:
    status: int
    headers: dict[str, str]
    text: str


def links(log: Sequence[str]) -> list[str]:
    return LINK.findall("".join(log))


async def the_link(log: Sequence[str], number: int = 1) -> str:
    """The first, second … address of the console that was logged."""
    await eventually(lambda: len(links(log)) >= number, what=f"{number} links were logged")
    return links(log)[number - 1]


class Browser:
    """Keeps the cookie of one server, and says of each request which page it is for."""

    def __init__(self, http: aiohttp.ClientSession, origin: str) -> None:
        self._http, self.origin = http, origin
        self.cookie: str | None = None

    async def open(self, address: str) -> Seen:
        """Open an address as a person who types it or clicks a link in a terminal. Redirects are not followed."""
        return await self.send("GET", address.removeprefix(self.origin), headers=OPENING)

    async def log_in(self, link: str) -> Seen:
        seen = await self.open(link)
        assert (seen.status, seen.headers["location"], self.cookie is not None) == (303, "/", True), seen
        return seen

    async def come_in(self, log: Sequence[str]) -> None:
        """Log in with the newest link; those before it were used by others."""
        number = max(1, len(links(log)))
        while (await self.open(await the_link(log, number))).status != 303:
            number += 1

    async def log_in_with(self, token: str) -> Seen:
        return await self.send("POST", "/console/login", data={"token": token}, headers=OWN)

    async def fetch(self, method: str, path: str, **options: Any) -> Seen:
        """Send the request of a script on the page."""
        return await self.send(method, path, headers=OWN | options.pop("headers", {}), **options)

    async def send(self, method: str, path: str, *, headers: dict[str, str], **options: Any) -> Seen:
        given = headers | ({} if self.cookie is None else {"cookie": self.cookie})
        url = self.origin + path
        async with self._http.request(method, url, headers=given, allow_redirects=False, **options) as response:
            if (cookie := response.headers.get("set-cookie")) is not None:
                self.cookie = cookie.partition(";")[0]
            return Seen(
                response.status, {name.lower(): text for name, text in response.headers.items()}, await response.text()
            )

    async def initialize(self, **headers: str) -> Seen:
        """Begin an MCP session of the page's own."""
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        return await self.fetch("POST", "/mcp", json=hello, headers={"accept": BOTH, **headers})

    async def pushes(self, session: str) -> EventReader:
        """The open push stream of an MCP session."""
        headers = OWN | {"accept": BOTH, "cookie": self.cookie or "", "mcp-session-id": session}
        response = await self._http.get(self.origin + "/mcp", headers=headers)
        assert response.status == 200, await response.text()
        return EventReader(response)


def browser_for(http: aiohttp.ClientSession, link: str) -> Browser:
    parts = urlsplit(link)
    return Browser(http, f"{parts.scheme}://{parts.netloc}")
