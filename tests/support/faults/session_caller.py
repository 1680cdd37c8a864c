"""A caller of either era with one session, who asks now this process and now that one."""

import copy
import random
from typing import Any

from support.callers.http_process import HttpCaller
from support.callers.restartable_process import RestartableProcess
from support.faults.bounded_requests import Answer, Unanswered, hear_of_a_loss, open_connection, send
from support.faults.findings import Rule
from support.faults.ledger import Ledger
from support.faults.timeline import Span
from support.faults.world import World
from support.sessions.replies import has_moved

KINDS = ("handshake", "handshake", "older", "joining", "handle", "handle", "named", "default")
MODERN = ("handle", "named", "default")
NO_SESSION = "TOOL_ERR_SESSION_NOT_FOUND"
Json = dict[str, Any]


class SessionCaller:
    """A caller with one session. Its ledger has the promises to it, and the events it received."""

    def __init__(self, world: World, kind: str, name: str, chance: random.Random) -> None:
        self.world, self.kind, self.name, self.chance = world, kind, name, chance
        self.ledger = Ledger(world.timeline)
        self.session: dict[str, str] = {}

    @property
    def is_modern(self) -> bool:
        return self.kind in MODERN

    async def open(self) -> None:
        process, headers = await self.world.choose(self.chance), self.world.headers
        match self.kind:
            case "handshake" | "older":
                version = "2025-06-18" if self.kind == "older" else "2025-11-25"
                self.caller: HttpCaller = await process.caller(version, client=self.name, **headers)
            case "joining":
                self.caller = await process.caller(client=self.name, emceepee_session=self.name, **headers)
            case "named":
                self.caller = process.modern(emceepee_session=self.name, **headers)
            case _:
                self.caller = process.modern(client=self.name, **headers)
        if self.kind == "handle":
            self.session = {"session": (await self.caller.value("open_session"))["session"]}

    def at(self, process: RestartableProcess) -> HttpCaller:
        """Return this caller with a connection to that process."""
        moved = copy.copy(self.caller)
        moved.endpoint = process
        return moved

    async def ask(
        self,
        tool: str,
        /,
        *,
        own: float = 0.0,
        at: RestartableProcess | None = None,
        session: dict[str, str] | None = None,
        **arguments: Any,
    ) -> Answer:
        """The answer to one call, of which the ledger does not hear. Raises: Unanswered."""
        process = at or await self.world.choose(self.chance)
        given = arguments | (self.session if session is None else session)
        answer = await send(self.world, process, self.at(process), {"name": tool, "arguments": given}, own=own)
        result = answer.message["result"]
        error = result["structuredContent"]["error"] if result.get("isError") else {}
        if error.get("code") == NO_SESSION:
            self.world.findings.add(Rule.SESSIONS_KEPT, f"{self.name}: {tool} at {answer.asked.ended:.3f}: {result}")
            raise Unanswered("the session is lost")
        if error.get("details", {}).get("reason") == "replica":
            hear_of_a_loss(self.world, answer, f"{self.name}: {error}")
        if has_moved(result):
            hear_of_a_loss(self.world, answer, f"{self.name}: {tool} was served where its session is not any more")
        return answer

    async def call(
        self, tool: str, /, *, own: float = 0.0, at: RestartableProcess | None = None, **arguments: Any
    ) -> tuple[Json, Span]:
        """The result, and when it was asked for. Raises: Unanswered."""
        answer = await self.ask(tool, own=own, at=at, **arguments)
        result = dict(answer.message["result"])
        teller = self.world.teller(answer.process)
        if tool == "set_timer" and not result.get("isError"):
            self.ledger.hear_of_a_commit(answer.asked, teller)
        self.ledger.hear(result, answer.asked, teller)  # that this reply told something is saved only after it
        return result, answer.asked

    async def open_another(self) -> "OtherSession":
        """One more session, which nobody uses before the end. Raises: Unanswered."""
        if self.is_modern:
            answer = await self.ask("open_session", session={})
            handle = answer.message["result"]["structuredContent"]["session"]
            return OtherSession(self.caller, {"session": handle}, answer.asked)
        process = await self.world.choose(self.chance)
        caller, asked = await open_connection(self.world, process, client=self.name)
        return OtherSession(caller, {}, asked)


class OtherSession:
    """A session besides a caller's own, and when it was opened."""

    def __init__(self, caller: HttpCaller, session: dict[str, str], opened: Span) -> None:
        self.caller, self.session, self.opened = caller, session, opened
