"""One script, from its first line to its result.

    worker   begin ── runs ──┐ waits              ┌ runs ── … ── ends
    here                     └ begin its calls ── │ answer
                               │ record: stored before the calls are sent
                               └ park: the worker ends, the snapshot stays

The record is stored once the script has waited for a tenth of a second, or before a reply names its task (`store`).

A script runs in a worker (`execution`) until all of it waits for answers. Only then do the calls that it made in that
stretch (`call_queue`) begin (`script_calls`). So a snapshot contains them all, and a snapshot that is stored before
they are sent covers every call that may have run. A process that continues from it repeats only computation.
"""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.spec import RESERVED_NAME
from emceepee.bounds.budget import OverBudget
from emceepee.clock import within
from emceepee.codemode.call_queue import CallQueue
from emceepee.codemode.execution import Execution
from emceepee.codemode.failures import ScriptFailure
from emceepee.codemode.kept_script import KeptScript
from emceepee.codemode.private_scripts import gives_answers, without_literals
from emceepee.codemode.script_calls import ScriptCalls
from emceepee.codemode.script_log import ScriptLog
from emceepee.codemode.script_workers import ScriptWorkers, sandbox_version
from emceepee.codemode.server_modules import ServerModules, modules_for
from emceepee.codemode.tool_access import ToolAccess
from emceepee.codemode.values import Conversions, NotJson, as_json, budget_of, excess
from emceepee.errors import EmceepeeError
from emceepee.futures import resolve
from emceepee.sessions.call import Call
from emceepee.sessions.calls import RECORD_SECONDS
from emceepee.sessions.session import Session
from emceepee.state.call_step import CallStage
from emceepee.telemetry.logs import EventLog
from emceepee.wire.codec import encode, encode_text
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from pydantic_monty import AsyncFutureSnapshot, MontyComplete

log = EventLog("codemode")
STORE_SECONDS = 2.0  # how long a reply waits for a computing script to become storable
PARK_SECONDS = 1.0  # a script that waits longer releases its worker
PARKED_BYTES_PER_PRINCIPAL, PARKED_BYTES_IN_ALL = 128 << 20, 256 << 20  # snapshots of waiting scripts
MOST_RECORD_BYTES = 4 << 20  # larger records stay in memory only


class _Name(NamedTuple):
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptParts:
    """State that all scripts share."""

    workers: ScriptWorkers
    tools: ToolAccess
    conversions: Conversions = field(default_factory=Conversions)
    running: "set[Script]" = field(default_factory=set)

    def of(self, principal: str) -> "list[Script]":
        """Return the running and waiting scripts of one principal."""
        return [script for script in self.running if script.principal == principal]

    def has_room_to_park(self, principal: str) -> bool:
        if sum(script.parked_bytes for script in self.of(principal)) > PARKED_BYTES_PER_PRINCIPAL:
            return False
        return sum(script.parked_bytes for script in self.running) <= PARKED_BYTES_IN_ALL


class Script:
    """The callee of a script's call. The script runs with the rights of `caller`; None means no special rights."""

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
        self.principal = session.principal
        self._parts, self._session, self._code = parts, session, code
        self._clock, self._limits = session.clock, session.limits
        self._began_at = session.clock.now() if kept is None else datetime.fromisoformat(kept.began_at)
        self._log = ScriptLog(self._limits.script_log_bytes, *(() if kept is None else (kept.log, kept.log_dropped)))
        self._kept = kept  # its state when it last waited
        self._broken = broken
        modules = ServerModules() if kept is None else ServerModules.from_record(kept.modules)
        self.calls = ScriptCalls(
            session, parts.tools, parts.conversions, self._log, caller=caller, on_answer=self._mark
        )
        self._queue = CallQueue(
            session,
            self._log,
            modules,
            tools=parts.tools,
            conversions=parts.conversions,
            under_way=self.calls.unanswered,
            code=code,
            made=0 if kept is None else kept.calls,
        )
        self._execution = Execution(
            parts.workers,
            self._queue,
            self._log,
            principal=session.principal,
            clock=session.clock,
            limits=session.limits,
            computed=0.0 if kept is None else kept.computed,
        )
        self._execution.source = "" if kept is None else kept.source
        self._call: Call | None = None
        self._has_begun_calls = kept is not None and kept.snapshot != b""
        self._was_stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()  # or has ended

    # The callee interface.

    async def request(self, method: str, params: JsonObject, *, origin: Any, plan: Any) -> JsonObject:
        """Run the script to its end. A failed script returns a result with the error. Raises: EmceepeeError."""
        self._call = self.calls.script = origin
        self._parts.running.add(self)
        value: JsonObject
        try:
            value = {"success": True, "result": await self._run()}
        except ScriptFailure as failure:
            value = {"success": False, "error": failure.body()}
            if gives_answers(self._code):
                value["error"]["message"] = without_literals(value["error"]["message"])
        finally:
            self._parts.running.discard(self)
            resolve(self._was_stored, None)
            await self._close()
        took = self._clock.now() - self._began_at
        value["logs"] = self._log.lines()
        value["stats"] = {"durationMs": round(took.total_seconds() * 1000), "mcpCalls": self._queue.made}
        result: JsonObject = {"content": [{"type": "text", "text": encode_text(value)}], "structuredContent": value}
        return result if value["success"] else result | {"isError": True}

    async def follow(self, task: BackendTask, *, origin: Any) -> JsonObject:
        raise EmceepeeError("A script is no task of a server's.")

    def leave_task(self, origin: Any) -> None:
        """Do nothing, because the record contains everything needed."""

    async def store(self) -> None:
        """Save a record from which another process can continue, if possible.

        If the script is computing, wait for its next pause, but at most `STORE_SECONDS`. A script that has made no
        calls needs no snapshot: it can start again.
        """
        if self._call is None or self._call.is_stored or not self._can_be_stored:
            return
        if not self._has_begun_calls:
            self._kept = self._as_kept(b"")
            await self._session.calls.store_with_key(self._call)
            return
        self.calls.interrupt_wait()
        with suppress(TimeoutError):
            await within(self._clock, STORE_SECONDS, self._was_stored)

    @property
    def _can_be_stored(self) -> bool:
        return self._call is not None and self._call.can_be_stored and self._session.unsaved.is_followed

    @property
    def is_waiting(self) -> bool:
        """Return whether all of the script waits for answers."""
        return self.calls.is_waited_for

    @property
    def worker_pid(self) -> int | None:
        """Return the process id of its current worker."""
        return self._execution.worker_pid

    @property
    def parked_bytes(self) -> int:
        return 0 if self._kept is None else len(self._kept.snapshot)

    def record(self) -> bytes | None:
        """Return the record from which another process can continue at the script's last wait."""
        if self._kept is None or self._kept.weight > MOST_RECORD_BYTES:
            return None
        return self._kept.to_bytes()

    # Execution.

    async def _run(self) -> Any:
        """Run the script and return its result as JSON. Raises: ScriptFailure, EmceepeeError."""
        if self._broken is not None:
            raise ScriptFailure("SnapshotLost", self._broken)
        await self._parts.workers.open()
        from pydantic_monty import AsyncFutureSnapshot, MontyError

        execution = self._execution
        try:
            if self._kept is None or not self._kept.snapshot:
                self._queue.modules = await modules_for(self._code, self._session.servers)
                snapshot = await execution.begin(self._code)
            else:
                self.calls.restore(self._kept.pending)
                snapshot = await execution.load(self._kept.snapshot)
            while isinstance(snapshot, AsyncFutureSnapshot):
                waiting = await self._wait(snapshot)
                answers = self.calls.take_answers(waiting.pending_call_ids)
                snapshot = await execution.resume(waiting, answers)
            return await self._result(snapshot)
        except MontyError as error:
            raise execution.failure_of(error) from None

    async def _result(self, complete: "MontyComplete") -> Any:
        """Raises: ScriptFailure."""
        if left := len(self._queue) + len(self.calls):
            self._log.write_line(f"{left} calls were not awaited and were given up.")
        most, output = self._limits.script_result_bytes, complete.output
        try:
            value = await self._parts.conversions.run(lambda budget: as_json(output, budget), budget_of(most))
        except NotJson as error:
            raise ScriptFailure("ValueError", f"The result cannot be returned: {error}") from None
        except OverBudget as error:
            raise _too_large(excess(error)) from None
        if (size := len(encode(value))) > most:
            raise _too_large(f"{size} bytes; at most {most} are returned")
        return value

    # Waiting.

    async def _wait(self, snapshot: "AsyncFutureSnapshot") -> "AsyncFutureSnapshot":
        """Wait until one of its calls has an answer. Return the snapshot to resume: after parking, a new one."""
        asked, at_work, call = snapshot.pending_call_ids, self.calls, self._call
        if call is not None and (call.is_stored or call.state.stage is CallStage.PROMOTED):
            if not call.is_stored:
                await self._store_waiting(snapshot)
            elif self._queue:
                await self._take_snapshot(snapshot)
            if self._queue:
                await self._session.unsaved.save()
        self._has_begun_calls = True
        at_work.begin(self._queue.take())
        if not at_work.has_answer(asked):
            await at_work.wait_for_answer(asked, RECORD_SECONDS)
        if not at_work.has_answer(asked) and call is not None and not call.is_stored:
            await self._store_waiting(snapshot)  # now, because a newer record is needed once the script continues
        if not at_work.has_answer(asked):
            await at_work.wait_for_answer(asked, PARK_SECONDS)
        if at_work.has_answer(asked):
            return snapshot
        return await self._park(snapshot, asked)

    async def _store_waiting(self, snapshot: "AsyncFutureSnapshot") -> None:
        if self._can_be_stored:
            await self._take_snapshot(snapshot)
            if self._call is not None:
                await self._session.calls.store_with_key(self._call)
        resolve(self._was_stored, None)

    async def _park(self, snapshot: "AsyncFutureSnapshot", asked: list[int]) -> "AsyncFutureSnapshot":
        """Release the worker until an answer arrives."""
        parked = await self._take_snapshot(snapshot)
        if not self._parts.has_room_to_park(self.principal):
            words = "Too much is parked already for this script to wait. Try again later."
            raise ScriptFailure("ParkingFull", words, self._execution.line_of(snapshot))
        await self._execution.let_worker_go()
        log.debug("script_parked", calls=self._queue.made, bytes=len(parked))
        while not self.calls.has_answer(asked):
            await self.calls.wait_for_answer(asked, None)
        loaded = await self._execution.load(parked)
        if not isinstance(loaded, type(snapshot)):
            raise ScriptFailure("SnapshotLost", "The script cannot continue from where it waited.")
        return loaded

    async def _take_snapshot(self, snapshot: "AsyncFutureSnapshot") -> bytes:
        taken = await asyncio.to_thread(snapshot.dump)  # a dump of several megabytes takes a while
        self._kept = self._as_kept(taken, set(snapshot.pending_call_ids))
        self._mark()
        return taken

    def _as_kept(self, snapshot: bytes, waiting: Collection[int] = ()) -> KeptScript:
        """Build the record. Without a snapshot, it describes the script before its start."""
        calls = [*self.calls.calls(), *self._queue.calls()]
        return KeptScript(
            version=sandbox_version(),
            snapshot=snapshot,
            source=self._execution.source,
            pending=[call for call in calls if call.number in waiting],
            modules=self._queue.modules.to_record() if snapshot else {},
            log=self._log.text if snapshot else "",
            log_dropped=self._log.dropped if snapshot else 0,
            calls=self._queue.made if snapshot else 0,
            computed=self._execution.computed if snapshot else 0.0,
            began_at=self._began_at.isoformat(),
        )

    def _mark(self) -> None:
        if self._call is not None and self._call.is_stored and self._call.call_id is not None:
            self._session.unsaved.mark(self._call.stored_as, self._call.call_id)

    async def _close(self) -> None:
        await self._execution.let_worker_go()
        await self.calls.close()


def _too_large(words: str) -> ScriptFailure:
    return ScriptFailure("ResultTooLarge", f"The result takes {words}. Return less of it.")
