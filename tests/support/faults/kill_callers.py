"""Callers of every kind that go on while their emceepee is killed and started again."""

import asyncio
import itertools
import random
from collections import Counter
from typing import Any

import aiohttp

from support.backends.counting_http import CountingBackend
from support.callers.http_process import EventReader, HttpCaller
from support.callers.restartable_process import RestartableProcess
from support.faults.kill_ledger import Ledger, Moment
from support.sessions.replies import text_of

LOST = (aiohttp.ClientError, ConnectionError)
CLEAR = {"TOOL_ERR_SERVER_DISCONNECTED", "TOOL_ERR_EXECUTION_FAILED"}
KINDS = ("handshake", "handshake", "older", "joining", "handle", "handle", "named", "default")
MODERN = ("handle", "named", "default")


class World:
    """What the callers have in common."""

    def __init__(self, endpoint: RestartableProcess, backends: dict[str, CountingBackend]) -> None:
        self.endpoint, self.backends = endpoint, backends
        self.serves = asyncio.Event()  # not set while it is down
        self.progressed = asyncio.Event()  # set with each step that a caller has made
        self.steps = 0
        self.counts: Counter[str] = Counter()
        self.is_over = False
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        return f"c{next(self._numbers)}"

    def progress(self) -> None:
        self.steps += 1
        self.progressed.set()


class KillCaller:
    """One session. What it does is chance; what it was promised is in its ledger."""

    def __init__(self, world: World, kind: str, name: str, chance: random.Random) -> None:
        self.world, self.kind, self.name, self.chance = world, kind, name, chance
        self.ledger = Ledger()
        self._cuts = 0
        self._session: dict[str, str] = {}
        self._held: list[tuple[str, str]] = []
        self._others: list[HttpCaller | str] = []  # more sessions, each opened by an answer that was read

    async def open(self) -> None:
        endpoint = self.world.endpoint
        match self.kind:
            case "handshake" | "older":
                version = "2025-06-18" if self.kind == "older" else "2025-11-25"
                self.caller: HttpCaller = await endpoint.caller(version, client=self.name)
            case "joining":
                self.caller = await endpoint.caller(client=self.name, emceepee_session=self.name)
            case "named":
                self.caller = endpoint.modern(emceepee_session=self.name)
            case _:
                self.caller = endpoint.modern(client=self.name)
        if self.kind == "handle":
            self._session = {"session": (await self.caller.value("open_session"))["session"]}
        started = await self.call("set_timer", duration_ms=1000, message="again and again", interval=True)
        self.ledger.intervals.add(started["structuredContent"]["timerId"])

    async def run(self) -> None:
        actions = [self._run, self._note, self._promote, self._let_go, self._time, self._listen]
        actions += [self._read_result, self._cut, self._open_another]
        weights = [5, 5, 4, 4, 4, 3, 2, 2, 1]
        while not self.world.is_over:
            await self.world.serves.wait()
            (action,) = self.chance.choices(actions, weights)
            try:
                await action()
            except LOST:
                self.world.counts["requests lost with a process"] += 1
            self.world.progress()

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        asked = self._now
        told = {(asked.process, event_id) for event_id in self.ledger.told[asked.process]}
        result = await self.caller.call(tool, **arguments, **self._session)
        self.ledger.hear(result, asked)
        if tool == "set_timer":  # it is in the store, and so is whatever was known before
            self.ledger.saved |= told
        return result

    @property
    def _now(self) -> Moment:
        return Moment(self.world.endpoint.starts, self._cuts)

    # What it does.

    async def _execute(self, tool: str, server: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        call_id = self.world.new_id()
        result = await self.call(
            "execute_tool", server=server, tool=tool, args={"id": call_id, "text": call_id}, **arguments
        )
        return call_id, result

    def _is_well(self, result: dict[str, Any]) -> bool:
        if result.get("isError"):
            error = result["structuredContent"]["error"]
            assert error["code"] in CLEAR, error
            self.world.counts["calls that failed with a clear error"] += 1
        return not result.get("isError")

    async def _run(self) -> None:
        call_id, result = await self._execute("echo", self.chance.choice(("old", "new", "local")))
        if self._is_well(result):
            assert call_id in text_of(result)
            self.world.counts["calls"] += 1

    async def _note(self) -> None:
        call_id, result = await self._execute("notify", "old")
        if self._is_well(result):
            self.ledger.notes.add(f"note://{call_id}")

    async def _promote(self) -> None:
        server = self.chance.choice(("old", "new"))
        call_id, result = await self._execute("hold", server, timeout_ms=0)
        if self._is_well(result):
            self.ledger.tasks[result["structuredContent"]["proxy_task"]["task_id"]] = call_id
            self._held.append((server, call_id))

    async def _let_go(self) -> None:
        while self._held:
            server, call_id = self._held.pop()
            self.world.backends[server].let_go(call_id)

    async def _time(self) -> None:
        result = await self.call("set_timer", duration_ms=self.chance.randint(1, 1500), message=self.world.new_id())
        self.ledger.timers.add(result["structuredContent"]["timerId"])

    async def _listen(self) -> None:
        await self.call("await_activity", timeout_ms=self.chance.randint(100, 300))

    async def _read_result(self) -> None:
        if completed := self.ledger.completed:
            await self._check_result(self.chance.choice(completed))

    async def _check_result(self, task_id: str) -> None:
        result = await self.call("get_task_result", task_id=task_id)
        call_id = self.ledger.tasks.get(task_id)  # unknown, if the reply that named the task was lost
        assert not result.get("isError"), result
        assert call_id in (None, text_of(result))
        self.world.counts["results read"] += 1

    async def _open_another(self) -> None:
        if self.kind in MODERN:
            self._others.append((await self.caller.value("open_session"))["session"])
        else:
            self._others.append(await self.world.endpoint.caller(client=self.name))

    # A stream that is cut, and taken up again if its era can.

    async def _cut(self) -> None:
        call_id, asked = self.world.new_id(), self._now
        last_id = None
        wanted: dict[str, Any] = {"server": "old", "tool": "hold", "args": {"id": call_id}}
        async with self.caller.stream("execute_tool", **wanted, **self._session) as stream:
            while (event := await stream.next()) is not None:
                last_id = event.event_id or last_id
                if event.message is not None:
                    break
            stream.cut()
        self._cuts += 1
        self.world.counts["streams cut"] += 1
        self.world.backends["old"].let_go(call_id)
        while last_id is not None and self.kind not in MODERN:
            await self.world.serves.wait()
            try:
                async with self.caller.get(last_id) as stream:
                    self._hear_end(call_id, await _last(stream), asked)
                return
            except LOST:
                self.world.counts["requests lost with a process"] += 1
                self.world.progress()

    def _hear_end(self, call_id: str, message: dict[str, Any], asked: Moment) -> None:
        if "error" in message:
            assert "was restarted while it served this" in message["error"]["message"], message
            self.world.counts["streams resumed, to hear of the restart"] += 1
            return
        result = message["result"]
        self.ledger.hear(result, asked, was_cut=True)
        if self._is_well(result) and "structuredContent" not in result:
            assert text_of(result) == call_id
            self.world.counts["streams resumed to the result"] += 1

    # The end.

    async def settle(self) -> None:
        """Everything that was promised comes, and nothing is left."""
        await self._let_go()
        for timer in self.ledger.intervals:
            await self.call("delete_timer", timer_id=timer)
        async with asyncio.timeout(30):
            is_quiet = False
            while self.ledger.missing or not is_quiet:
                result = await self.call("await_activity", timeout_ms=100)
                is_quiet = result["structuredContent"]["triggers"] == [{"type": "timeout"}]

    async def check(self) -> None:
        for task_id in self.ledger.completed:
            await self._check_result(task_id)
        self.ledger.check(await self._kept_events())
        for other in self._others:
            caller, session = (self.caller, {"session": other}) if isinstance(other, str) else (other, {})
            await caller.value("list_timers", **session)
            self.world.counts["more sessions"] += 1

    async def _kept_events(self) -> list[str]:
        """The ids of all of them, delivered or not."""
        kept: list[str] = []
        last, has_more = "0", True
        while has_more:
            told = await self.caller.value("await_activity", timeout_ms=100, last_event_id=last, **self._session)
            kept += [event["id"] for group in told["events"] for event in group["events"]]
            last, has_more = told["lastEventId"], "more" in told
        return kept


async def _last(stream: EventReader) -> dict[str, Any]:
    """Raises: ClientError if it was cut before its end."""
    last = None
    while (event := await stream.next()) is not None:
        last = event.message or last
    if last is None or not ({"result", "error"} & last.keys()):
        raise aiohttp.ClientPayloadError("it ended without an answer")
    return last
