"""Whether anybody but its holder changes a session: its numbers in Redis, looked at all the time, never go back."""

import asyncio
from types import TracebackType
from typing import NamedTuple, Self

from redis.asyncio import Redis
from redis.exceptions import RedisError

from support.faults.findings import Findings, Rule
from support.system.redis_server import RedisServer

LOOK_EVERY = 0.1  # seconds
ANSWER_WITHIN = 1.0  # seconds, or the look is given up


class Look(NamedTuple):
    """A session as Redis has it."""

    fence: int
    revision: int
    epoch: str
    """Of the process that holds it; "" if nobody does."""


class StaleCommitWatch:
    """Looks until the block is left."""

    def __init__(self, server: RedisServer, findings: Findings) -> None:
        self._server, self._findings = server, findings
        self._seen: dict[bytes, Look] = {}
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._watch())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._watching is not None
        self._watching.cancel()
        await asyncio.wait({self._watching})

    async def _watch(self) -> None:
        while True:
            client = Redis(port=self._server.port, socket_timeout=ANSWER_WITHIN, socket_connect_timeout=ANSWER_WITHIN)
            try:
                async with client:
                    while True:
                        await self._look(client)
                        await asyncio.sleep(LOOK_EVERY)  # between two looks
            except (RedisError, OSError):
                await asyncio.sleep(LOOK_EVERY)  # it is away

    async def _look(self, client: "Redis") -> None:
        names = [name async for name in client.scan_iter(match="*:session:*", count=1000)]
        async with client.pipeline(transaction=False) as pipeline:
            for name in names:
                pipeline.hmget(name, ["f", "r", "o"])
            told = await pipeline.execute()
        for name, (fence, revision, owner) in zip(names, told, strict=True):
            if fence is not None:
                self._compare(name, Look(int(fence), int(revision), owner.decode().split(":")[1] if owner else ""))

    def _compare(self, name: bytes, now: Look) -> None:
        before = self._seen.get(name, now)
        self._seen[name] = now
        is_ahead = now.fence >= before.fence and now.revision >= before.revision
        is_same = now.fence != before.fence or now.epoch in ("", before.epoch)
        if not (is_ahead and is_same):
            self._findings.add(Rule.NO_STALE_COMMITS, f"{name.decode()} had {before}, and has {now}")
