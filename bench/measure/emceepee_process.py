"""emceepee over HTTP with some servers behind it, and sessions on it, for the measurements that are about it alone."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from time import perf_counter

from bench.contestants import ASK_AGAIN_SECONDS, START_SECONDS, emceepee, server_entry
from bench.load.http_client import HttpLine, HttpSession
from bench.load.sample import WrongAnswer
from bench.processes import Child, Launch, free_port, running, running_meanwhile
from bench.work import Era, Json

LINES = 8  # connections that share the opening of many sessions
CONNECT_SECONDS = 60.0
SETTLE_SECONDS = 1.0  # for what follows an opening: lists, streams


@dataclass(frozen=True, slots=True)
class Emceepee:
    """A running one."""

    child: Child
    port: int


def servers(count: int, url: str, era: Era) -> Json:
    """So many servers, all at the same address."""
    return {f"backend{number or ''}": server_entry(url, era) for number in range(count)}


def _launch(config: Json, *options: str, **limits: float) -> tuple[Launch, int]:
    port = free_port()
    return emceepee(config, str(port), *options, **limits), port


@contextmanager
def emceepee_with(config: Json) -> Iterator[Emceepee]:
    launch, port = _launch(config)
    with running(launch) as child:
        yield Emceepee(child, port)


@asynccontextmanager
async def emceepee_beside(config: Json, *options: str, **limits: float) -> AsyncIterator[Emceepee]:
    """For measurements whose backend runs in our own loop."""
    launch, port = _launch(config, *options, **limits)
    async with running_meanwhile(launch) as child:
        await until_it_listens(child, port)
        yield Emceepee(child, port)


async def until_it_listens(child: Child, port: int) -> None:
    give_up = perf_counter() + START_SECONDS
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if perf_counter() > give_up or not child.is_running:
                raise WrongAnswer(f"emceepee does not listen: {child.last_words()}") from None
            await asyncio.sleep(ASK_AGAIN_SECONDS)
        else:
            writer.close()
            return


async def open_sessions(proxy: Emceepee, count: int) -> list[HttpSession]:
    """Sessions of the handshake era that nobody uses."""
    await until_it_listens(proxy.child, proxy.port)
    opened: list[HttpSession] = []

    async def some(share: int) -> None:
        line = HttpLine("127.0.0.1", proxy.port)
        for _ in range(share):
            session = HttpSession(proxy.port, Era.HANDSHAKE, line=line)
            await session.open()
            opened.append(session)
        line.close()

    shares = [count // LINES + (number < count % LINES) for number in range(LINES)]
    await asyncio.gather(*(some(share) for share in shares if share))
    return opened


async def until_connected(session: HttpSession, count: int) -> None:
    """Ask over a separate connection, which works even for sessions whose own connection is closed."""
    asked = HttpSession(session.port, session.era)
    asked.headers = session.headers
    give_up = perf_counter() + CONNECT_SECONDS
    while True:
        states = [server["status"] for server in (await asked.value("list_servers"))["servers"]]
        if states == ["connected"] * count:
            break
        if perf_counter() > give_up:
            raise WrongAnswer(f"not all servers were connected: {states}")
        await asyncio.sleep(ASK_AGAIN_SECONDS)
    while (await asked.value("await_activity", timeout_ms=100))["events"]:
        pass  # else the first calls would carry what has happened
    asked.line.close()
