"""One script, from its first line to its result.

    worker   begin ── runs ──┐ waits          ┌ runs ── … ── ends
    here                     └ begin calls ── │ answer
                               │ kept: in the store, before its calls are sent
                               └ parked: the worker is let go, the snapshot stays

A script runs in a worker (`execution`) until all of it waits for answers. Only then are the calls that it made
meanwhile (`call_queue`) begun (`calls_at_work`): so a snapshot has them all, and one that is in the store before they
are sent knows of every call that may have run. Whoever goes on from it repeats nothing but what the script computed.
"""

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.spec import RESERVED_NAME
from emceepee.codec import encode, encode_text
from emceepee.codemode.call_queue import CallQueue
from emceepee.codemode.calls_at_work import CallsAtWork
from emceepee.codemode.execution import Execution
from emceepee.codemode.failures import ScriptFailure
from emceepee.codemode.inner_calls import InnerCalls
from emceepee.codemode.kept_script import KeptScript
from emceepee.codemode.server_modules import ServerModules, modules_for
from emceepee.codemode.values import ScriptLog, as_json
from emceepee.codemode.workers import Workers, sandbox_version
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject
from emceepee.sessions.call import Call
from emceepee.sessions.calls import RECORD_SECONDS
from emceepee.sessions.session import Session
from emceepee.state.question import Question
from emceepee.telemetry.logs import EventLog

if TYPE_CHECKING:
    from pydantic_monty import AsyncFutureSnapshot, MontyComplete

log = EventLog("codemode")
PARK_SECONDS = 1.0  # a script that waits for longer holds no worker
MOST_RECORD_BYTES = 4 << 20  # a larger snapshot is kept in memory only


class _Name(NamedTuple):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptParts:
    """What all scripts share."""

    workers: Workers
    tools: InnerCalls
    running: "set[Script]" = field(default_factory=set)

    def parked_bytes(self) -> int:
        return sum(script.parked_bytes for script in self.running)


class Script:
    """A call of its session, whose callee it is. `caller` is whose rights it has; None: nobody's that are special."""

    spec = _Name(RESERVED_NAME)

    def __init__(
        self,
        parts: ScriptParts,
        session: Session,
        code: str,
        *,
        caller: Any = None,
        kept: KeptScript | None = None,
        broken: str | None = None,
    ) -> None:
        self._parts, self._session, self._code = parts, session, code
        self._clock, self._limits = session.clock, session.limits
        self._began_at = session.clock.now() if kept is None else datetime.fromisoformat(kept.began_at)
        self._log = ScriptLog(self._limits.script_log_bytes, *(() if kept is None else (kept.log, kept.log_dropped)))
        self._kept = kept  # as it was when it last waited
        self._broken = broken
        modules = ServerModules() if kept is None else ServerModules.from_record(kept.modules)
        self._queue = CallQueue(session, self._log, modules, made=0 if kept is None else kept.calls)
        self._at_work = CallsAtWork(session, parts.tools, caller=caller, on_answer=self._mark)
        self._execution = Execution(
            parts.workers,
            self._queue,
            self._log,
            clock=session.clock,
            limits=session.limits,
            computed=0.0 if kept is None else kept.computed,
        )
        self._call: Call | None = None

    # As a callee.

    async def request(self, method: str, params: JsonObject, *, origin: Any, plan: Any) -> JsonObject:
        """Run it to its end. A script that fails is a result that says so. Raises: EmceepeeError."""
        self._call = self._at_work.script = origin
        self._parts.running.add(self)
        value: JsonObject
        try:
            value = {"success": True, "result": await self._run()}
        except ScriptFailure as failure:
            value = {"success": False, "error": failure.body()}
        finally:
            self._parts.running.discard(self)
            await self._close()
        took = self._clock.now() - self._began_at
        value["logs"] = self._log.lines()
        value["stats"] = {"durationMs": round(took.total_seconds() * 1000), "mcpCalls": self._queue.made}
        result: JsonObject = {"content": [{"type": "text", "text": encode_text(value)}], "structuredContent": value}
        return result if value["success"] else result | {"isError": True}

    async def follow(self, task: BackendTask, *, origin: Any) -> JsonObject:
        raise EmceepeeError("A script is no task of a server's.")

    def leave_task(self, origin: Any) -> None:
        """Its record has all that is needed."""

    def may_have_asked(self, question: Question) -> bool:
        """Whether one of its calls waits for the answer, as far as is known."""
        return self._at_work.may_have_asked(question)

    @property
    def is_waiting(self) -> bool:
        """Whether all of it waits for answers."""
        return self._at_work.is_waited_for

    @property
    def worker_pid(self) -> int | None:
        """The process that it runs in just now."""
        return self._execution.worker_pid

    @property
    def parked_bytes(self) -> int:
        return 0 if self._kept is None else len(self._kept.snapshot)

    def record(self) -> bytes | None:
        """For another process to go on with, from where it last waited."""
        if self._kept is None or self.parked_bytes > MOST_RECORD_BYTES:
            return None
        return self._kept.to_bytes()

    # The way of a script.

    async def _run(self) -> Any:
        """Its result as JSON. Raises: ScriptFailure, EmceepeeError."""
        if self._broken is not None:
            raise ScriptFailure("SnapshotLost", self._broken)
        await self._parts.workers.open()
        from pydantic_monty import AsyncFutureSnapshot, MontyError

        execution = self._execution
        try:
            if self._kept is None:
                self._queue.modules = await modules_for(self._code, self._session.connections)
                snapshot = await execution.begin(self._code)
            else:
                self._at_work.restore(self._kept.pending)
                snapshot = await execution.load(self._kept.snapshot)
            while isinstance(snapshot, AsyncFutureSnapshot):
                waiting = await self._wait(snapshot)
                answers = self._at_work.take_answers(waiting.pending_call_ids)
                snapshot = await execution.resume(waiting, answers)
            return self._result(snapshot)
        except MontyError as error:
            raise execution.failure_of(error) from None

    def _result(self, complete: "MontyComplete") -> Any:
        if left := len(self._queue) + len(self._at_work):
            self._log.write_line(f"{left} calls were not awaited and were given up.")
        try:
            value = as_json(complete.output)
        except ValueError as error:
            raise ScriptFailure("ValueError", f"The result cannot be returned: {error}") from None
        size, most = len(encode(value)), self._limits.script_result_bytes
        if size > most:
            raise ScriptFailure(
                "ResultTooLarge", f"The result takes {size} bytes; at most {most} are returned. Return less of it."
            )
        return value

    # Waiting.

    async def _wait(self, snapshot: "AsyncFutureSnapshot") -> "AsyncFutureSnapshot":
        """Until one of its calls has an answer. Returns what to go on from: after a while, another than before."""
        asked, at_work = snapshot.pending_call_ids, self._at_work
        if self._queue and self._call is not None and self._call.is_kept:
            await self._take_snapshot(snapshot)
            await self._session.unsaved.save()
        at_work.begin(self._queue.take())
        if not at_work.has_answer(asked):
            await at_work.wait_for_answer(asked, RECORD_SECONDS)
        if not at_work.has_answer(asked) and self._call is not None and not self._call.is_kept:
            await self._take_snapshot(snapshot)
            await self._session.calls.keep_at_once(self._call)  # before it goes on, and needs a newer record
        if not at_work.has_answer(asked):
            await at_work.wait_for_answer(asked, PARK_SECONDS)
        if at_work.has_answer(asked):
            return snapshot
        return await self._park(snapshot, asked)

    async def _park(self, snapshot: "AsyncFutureSnapshot", asked: list[int]) -> "AsyncFutureSnapshot":
        """Let the worker go until there is an answer."""
        parked = await self._take_snapshot(snapshot)
        if self._parts.parked_bytes() > self._limits.parked_bytes_in_all:
            raise ScriptFailure("ParkingFull", "Too much is parked already for this script to wait. Try again later.")
        await self._execution.let_worker_go()
        log.debug("script_parked", calls=self._queue.made, bytes=len(parked))
        while not self._at_work.has_answer(asked):
            await self._at_work.wait_for_answer(asked, None)
        loaded = await self._execution.load(parked)
        if not isinstance(loaded, type(snapshot)):
            raise ScriptFailure("SnapshotLost", "The script cannot go on from where it waited.")
        return loaded

    async def _take_snapshot(self, snapshot: "AsyncFutureSnapshot") -> bytes:
        taken = await asyncio.to_thread(snapshot.dump)  # some megabytes take a while
        waiting = set(snapshot.pending_call_ids)
        calls = [*self._at_work.calls(), *self._queue.calls()]
        self._kept = KeptScript(
            version=sandbox_version(),
            snapshot=taken,
            pending=[call for call in calls if call.number in waiting],
            modules=self._queue.modules.to_record(),
            log=self._log.text,
            log_dropped=self._log.dropped,
            calls=self._queue.made,
            computed=self._execution.computed,
            began_at=self._began_at.isoformat(),
        )
        self._mark()
        return taken

    def _mark(self) -> None:
        if self._call is not None and self._call.is_kept and self._call.call_id is not None:
            self._session.unsaved.mark(self._call.kept_as, self._call.call_id)

    async def _close(self) -> None:
        await self._execution.let_worker_go()
        await self._at_work.close()
