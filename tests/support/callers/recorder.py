"""A real emceepee whose every event is kept, whichever reply carried it."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.callers.emceepee_process import EmceepeeProcess, emceepee
from support.sessions.replies import told_events

HOSTILE = Path(__file__).parents[1] / "server_programs" / "hostile.py"
# Short enough for a test, with the same proportions as the defaults.
LIMITS = {"http_retry_seconds": 0.05, "longest_http_retry_seconds": 0.2, "connect_seconds": 10}
RESTARTS = {"baseDelayMs": 20, "maxDelayMs": 100}
LONGEST = 30.0  # seconds that any one event may take to come


def hostile(name: str = "one", *flags: str, **more: Any) -> dict[str, Any]:
    """The configuration of a hostile child."""
    return {
        "name": name,
        "command": sys.executable,
        "args": ["-S", str(HOSTILE), *flags],
        "restartConfig": RESTARTS,
        **more,
    }


class Recorder:
    """Speaks to emceepee; `events` is everything it said had happened, in order."""

    def __init__(self, process: EmceepeeProcess) -> None:
        self.process = process
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._seen: set[str] = set()

    @property
    def pid(self) -> int:
        return self.process.process.pid

    @property
    def types(self) -> list[str]:
        return [kind for kind, _ in self.events]

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        result = await self.process.call(tool, **arguments)
        self._keep(told_events(result))
        if tool == "await_activity":
            self._keep(event for group in result["structuredContent"]["events"] for event in group["events"])
        return result

    async def value(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        result = await self.call(tool, **arguments)
        assert not result.get("isError"), result
        return dict(result["structuredContent"])

    async def execute(
        self, tool: str, server: str = "one", timeout_ms: int = 20_000, **arguments: Any
    ) -> dict[str, Any]:
        return await self.call("execute_tool", server=server, tool=tool, args=arguments, timeout_ms=timeout_ms)

    async def text(self, tool: str, server: str = "one", **arguments: Any) -> str:
        """The first words of a call that must succeed."""
        result = await self.execute(tool, server, **arguments)
        assert not result.get("isError"), result
        return str(result["content"][0]["text"])

    async def until(self, kind: str, count: int = 1) -> dict[str, Any]:
        """Wait until an event of that type has come so many times; its data."""
        async with asyncio.timeout(LONGEST):
            while self.types.count(kind) < count:
                await self.call("await_activity", timeout_ms=5000)
        return [data for told, data in self.events if told == kind][count - 1]

    async def settled(self) -> None:
        """No task is at work and no question is open."""
        assert (await self.value("list_tasks"))["tasks"] == []
        assert (await self.value("get_elicitations"))["requests"] == []

    def _keep(self, events: Iterable[dict[str, Any]]) -> None:
        for event in events:
            assert event["id"] not in self._seen, f"delivered twice: {event}"
            self._seen.add(event["id"])
            self.events.append((event["type"], event["data"]))


@asynccontextmanager
async def recorded(*servers: dict[str, Any], **limits: Any) -> AsyncIterator[Recorder]:
    """An emceepee with these servers, which it has begun to connect."""
    config = {"servers": list(servers), "limits": LIMITS | limits, "logLevel": "error"}
    async with emceepee(env={"EMCEEPEE_CONFIG": json.dumps(config)}) as process:
        await process.initialize()
        yield Recorder(process)
