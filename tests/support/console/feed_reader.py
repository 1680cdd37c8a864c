"""The feed of a real emceepee, and its content as a page stores it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from support.console.http_browser import OWN, Browser
from support.waiting import eventually

Json = dict[str, Any]


class FeedReader:
    """The content of a feed. `gone` lists removed sessions, once per message about it."""

    def __init__(self) -> None:
        self.is_ready = False
        self.sessions: dict[str, Json] = {}
        self.gone: list[str] = []
        self.rows: dict[str, Json] = {}
        self.logs: list[Json] = []

    async def read(self, content: aiohttp.StreamReader) -> None:
        """To its end."""
        name = ""
        async for line in content:
            field, _, text = line.decode().strip().partition(": ")
            if field == "event":
                name = text
            elif field == "data":
                self._hear(name, json.loads(text))

    def _hear(self, name: str, data: Json) -> None:
        match name:
            case "ready":
                self.is_ready = True
            case "session":
                self.sessions[data["id"]] = data
            case "session_gone":
                del self.sessions[data["id"]]
                self.gone.append(data["id"])
            case "requests":
                self.rows |= {row["id"]: row for row in data["rows"]}
            case "logs":
                self.logs += data["logs"]

    def labels(self) -> set[str]:
        return {session["label"].partition(" ")[0] for session in self.sessions.values()}

    def session(self, label: str) -> Json:
        [found] = [each for each in self.sessions.values() if each["label"].startswith(label)]
        return found

    async def shows(self, *labels: str) -> None:
        await eventually(lambda: self.labels() == set(labels), what=f"the page shows {labels}: {self.labels()}")


@asynccontextmanager
async def an_open_feed(http: aiohttp.ClientSession, browser: Browser) -> AsyncIterator[FeedReader]:
    """Open the feed of the logged-in person, and wait for its complete beginning."""
    reader, headers = FeedReader(), OWN | {"cookie": browser.cookie or ""}
    timeout = aiohttp.ClientTimeout(total=None)
    async with http.get(
        f"{browser.origin}/console/feed", headers=headers, timeout=timeout, read_bufsize=1 << 22
    ) as feed:
        assert feed.status == 200
        reading = asyncio.create_task(reader.read(feed.content))
        try:
            await eventually(lambda: reader.is_ready, what="the feed is complete")
            yield reader
        finally:
            reading.cancel()
            await asyncio.wait([reading])
