"""One script, from its first line to its result.

    worker   begin ── runs ──┐ waits          ┌ runs ── … ── ends
    here                     └ start calls ── │ answer
                               │ kept: in the store, before its calls are sent
                               └ parked: the worker is let go, the snapshot stays

A script runs in a worker until all of it waits for answers. Only then are the calls that it made meanwhile begun: so a
snapshot has them all, and one that is in the store before they are sent knows of every call that may have run. Whoever
goes on from it repeats nothing but what the script computed.
"""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.spec import RESERVED_NAME
from emceepee.clock import within
from emceepee.codec import encode, encode_text
from emceepee.codemode.answers import exception_for, raised, returned, value_of
from emceepee.codemode.bindings import (
    BINDINGS,
    CALL_TOOL,
    LOG,
    METHODS,
    MODULE,
    OWN_TOOL,
    SLEEP,
    THIS_TOOL,
    BadScriptCall,
    bind,
)
from emceepee.codemode.failures import ScriptFailure, failure_of, only_returns, problems_of, with_awaits
from emceepee.codemode.inner_calls import InnerAnswer, InnerCalls
from emceepee.codemode.kept_script import KeptScript, PendingCall
from emceepee.codemode.server_modules import PACKAGE, ServerModules, modules_for
from emceepee.codemode.values import NotJson, ScriptLog, as_json
from emceepee.codemode.workers import Worker, Workers, sandbox_version
from emceepee.errors import EmceepeeError
from emceepee.futures import resolve
from emceepee.json_types import JsonObject
from emceepee.lifecycle import CLOSE_TASKS_SECONDS, TaskOwner
from emceepee.sessions.call import Call
from emceepee.sessions.calls import RECORD_SECONDS
from emceepee.sessions.session import Session
from emceepee.state.call import CallStage
from emceepee.state.task import Task
from emceepee.telemetry.logs import EventLog

if TYPE_CHECKING:
    from pydantic_monty import (
        AsyncFunctionSnapshot,
        AsyncFutureSnapshot,
        AsyncNameLookupSnapshot,
        AsyncSnapshot,
        MontyComplete,
    )

log = EventLog("codemode")
PARK_SECONDS = 1.0  # a script that waits for longer holds no worker
PARALLEL_CALLS = 20  # of one script; the others wait for their turn
MOST_RECORD_BYTES = 4 << 20  # a larger snapshot is kept in memory only
PRELUDE = f"import asyncio, json, {MODULE}\n"  # what scripts need not import
_MODULES = ("import", "import_stubs")
_MAY_HAVE_RUN = (
    "emceepee was restarted before the answer came. It is not known whether it ran: check before you call it again."
)


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
        self._parts, self._session, self._code, self._caller = parts, session, code, caller
        self._clock, self._limits = session.clock, session.limits
        self._began_at = session.clock.now() if kept is None else datetime.fromisoformat(kept.began_at)
        self._began = session.clock.monotonic()
        self._log = ScriptLog(self._limits.script_log_bytes, *(() if kept is None else (kept.log, kept.log_dropped)))
        self._calls = 0 if kept is None else kept.calls
        self._computed = 0.0 if kept is None else kept.computed
        self._modules = ServerModules() if kept is None else ServerModules.from_record(kept.modules)
        self._snapshot: bytes | None = None if kept is None else kept.snapshot
        self._at_snapshot: list[PendingCall] = [] if kept is None else kept.pending  # what the snapshot waits for
        self._broken = broken
        self._queued: list[PendingCall] = []  # made, but not begun
        self._pending: dict[int, PendingCall] = {}  # begun, and not yet answered in the sandbox
        self._answered: asyncio.Future[None] | None = None
        self._room = asyncio.Semaphore(PARALLEL_CALLS)
        self._worker: Worker | None = None
        self._work = TaskOwner("script")
        self._call: Call | None = None

    # As a callee.

    async def request(self, method: str, params: JsonObject, *, origin: Any, plan: Any) -> JsonObject:
        """Run it to its end. A script that fails is a result that says so. Raises: EmceepeeError."""
        self._call = origin
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
        value["stats"] = {"durationMs": round(took.total_seconds() * 1000), "mcpCalls": self._calls}
        result: JsonObject = {"content": [{"type": "text", "text": encode_text(value)}], "structuredContent": value}
        return result if value["success"] else result | {"isError": True}

    async def follow(self, task: BackendTask, *, origin: Any) -> JsonObject:
        raise EmceepeeError("A script is no task of a server's.")

    def leave_task(self, origin: Any) -> None:
        """Its record has all that is needed."""

    @property
    def inner_ids(self) -> frozenset[str]:
        """The ids of its calls that have no answer yet."""
        return frozenset(call.call_id for call in self._pending.values() if call.answer is None)

    @property
    def is_waiting(self) -> bool:
        """Whether all of it waits for answers."""
        return self._answered is not None and not self._answered.done()

    @property
    def worker_pid(self) -> int | None:
        """The process that it runs in just now."""
        return None if self._worker is None else self._worker.pid

    @property
    def parked_bytes(self) -> int:
        return len(self._snapshot or b"")

    def record(self) -> bytes | None:
        """For another process to go on with, from where it last waited."""
        if self._snapshot is None or len(self._snapshot) > MOST_RECORD_BYTES:
            return None
        return KeptScript(
            version=sandbox_version(),
            snapshot=self._snapshot,
            pending=self._at_snapshot,
            modules=self._modules.to_record(),
            log=self._log.text,
            log_dropped=self._log.dropped,
            calls=self._calls,
            computed=self._computed,
            began_at=self._began_at.isoformat(),
        ).to_bytes()

    # The way of a script.

    async def _run(self) -> Any:
        """Its result as JSON. Raises: ScriptFailure, EmceepeeError."""
        if self._broken is not None:
            raise ScriptFailure("SnapshotLost", self._broken)
        await self._parts.workers.open()
        from pydantic_monty import AsyncFutureSnapshot, MontyError

        try:
            snapshot = await (self._begin() if self._snapshot is None else self._restore())
            while isinstance(snapshot, AsyncFutureSnapshot):
                snapshot = await self._go_on(snapshot)
            return self._result(snapshot)
        except MontyError as error:
            raise failure_of(error, before=PRELUDE.count("\n"), seconds=self._limits.script_compute_seconds) from None

    async def _begin(self) -> "AsyncFutureSnapshot | MontyComplete":
        from pydantic_monty import MontyTypingError

        self._modules = await modules_for(self._code, self._session.connections)
        code, is_checked, refusal = PRELUDE + self._code, True, None
        worker = await self._take_worker(is_checked=True)
        while True:
            try:
                return await self._advance(worker.begin(code, self._print, is_checked=is_checked))
            except MontyTypingError as error:
                problems = problems_of(error)
                if only_returns(problems):
                    is_checked = False
                elif refusal is None and (awaited := with_awaits(code, problems)) is not None:
                    code, refusal = awaited, error
                else:
                    raise refusal or error from None

    async def _restore(self) -> "AsyncFutureSnapshot | MontyComplete":
        """What another process left: its calls have gone on, or it is not known what became of them."""
        for call in self._at_snapshot:
            self._pending[call.number] = call
            if call.answer is None:
                self._work.spawn(self._serve(call, is_restored=True), name=call.function)
        return await self._load()

    async def _load(self) -> "AsyncFutureSnapshot | MontyComplete":
        assert self._snapshot is not None  # whoever calls it looked
        worker = await self._take_worker(is_checked=False)
        return await self._advance(worker.load(self._snapshot, self._print))

    async def _go_on(self, snapshot: "AsyncFutureSnapshot") -> "AsyncFutureSnapshot | MontyComplete":
        """Wait for answers, and give them to the script."""
        waiting = await self._wait(snapshot)
        answers = {
            number: self._pending.pop(number).answer
            for number in waiting.pending_call_ids
            if number in self._pending and self._pending[number].answer is not None
        }
        return await self._advance(waiting.resume(answers))

    async def _advance(self, step: "Awaitable[AsyncSnapshot]") -> "AsyncFutureSnapshot | MontyComplete":
        """Let it run until all of it waits, or it has ended."""
        from pydantic_monty import AsyncFutureSnapshot, MontyComplete

        while True:
            began = self._clock.monotonic()
            snapshot = await step
            self._computed += self._clock.monotonic() - began
            if isinstance(snapshot, AsyncFutureSnapshot | MontyComplete):
                return snapshot
            step = self._answer_at_once(snapshot)

    def _result(self, complete: "MontyComplete") -> Any:
        if self._queued or self._pending:
            self._log.write_line(f"{len(self._queued) + len(self._pending)} calls were not awaited and were given up.")
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

    # What the sandbox asks.

    async def _answer_at_once(self, asked: "AsyncFunctionSnapshot | AsyncNameLookupSnapshot") -> "AsyncSnapshot":
        from pydantic_monty import AsyncNameLookupSnapshot

        if isinstance(asked, AsyncNameLookupSnapshot):
            return await asked.resume()
        if asked.is_os_function and asked.function_name in _MODULES:
            return await asked.resume_auto()
        try:
            answer = self._accept(asked)
        except (BadScriptCall, NotJson) as error:
            answer = raised("TypeError", f"{asked.function_name}: {error}")
        return await asked.resume(answer)  # type: ignore[arg-type]  # of the names of exceptions it knows

    def _accept(self, asked: "AsyncFunctionSnapshot") -> JsonObject:
        """Put a call into the queue; or answer what needs no call. Raises: BadScriptCall, NotJson, ScriptFailure."""
        name, args, kwargs = str(asked.function_name), asked.args, asked.kwargs
        if asked.is_os_function:
            if name == "asyncio.sleep":
                return self._queue_sleep(asked.call_id, args[0])
            return raised("PermissionError", f"{name} is not for scripts: they can only call. {_hint(name)}".strip())
        module, _, member = name.partition(".")
        if module == PACKAGE and (function := self._modules.find(name)) is not None:
            given = function.arguments(bind((), args, {}) | as_json(kwargs))  # nothing by position
            arguments = {"server": function.server, "tool": function.tool, "args": given}
            return self._queue(asked.call_id, CALL_TOOL, arguments)
        method = METHODS.get(member)
        if module != MODULE or method is None:
            return raised("NameError", f"name '{name}' is not defined")
        if method == LOG:
            self._log.write_line(" ".join(str(as_json(value)) for value in args))
            return returned(None)
        if method == SLEEP:
            return self._queue_sleep(asked.call_id, bind(("seconds",), args, kwargs).get("seconds"))
        if method == OWN_TOOL:
            return self._queue_own(asked.call_id, bind(("name", "args"), args, kwargs))
        binding = BINDINGS[method]
        arguments = dict(binding.defaults) | bind(binding.parameters, args, kwargs)
        return self._queue(asked.call_id, binding.tool, arguments, binding.key)

    def _queue_own(self, number: int, given: JsonObject) -> JsonObject:
        name, arguments = given.get("name"), given.get("args", {})
        if not isinstance(name, str) or not isinstance(arguments, dict):
            raise BadScriptCall("give the name of a tool of emceepee and a dict of its arguments")
        if name == THIS_TOOL:
            raise BadScriptCall("a script cannot start another one")
        return self._queue(number, name, arguments)

    def _queue_sleep(self, number: int, seconds: Any) -> JsonObject:
        most = self._limits.longest_task_ttl_seconds
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds <= most:
            raise BadScriptCall(f"seconds: a number from 0 to {most:g}")
        wakes_at = (self._clock.now() + timedelta(seconds=seconds)).isoformat()
        self._queued.append(PendingCall(number=number, function=SLEEP, arguments={}, wakes_at=wakes_at))
        return {"future": ...}

    def _queue(self, number: int, tool: str, arguments: JsonObject, key: str | None = None) -> JsonObject:
        self._calls += 1
        if self._calls > (most := self._limits.calls_per_script):
            self._calls = most
            raise ScriptFailure("CallLimit", f"The script made more than {most} calls, so it was ended.")
        call_id = self._session.ids.new()
        self._queued.append(PendingCall(number=number, function=tool, arguments=arguments, key=key, call_id=call_id))
        return {"future": ...}

    # Waiting.

    async def _wait(self, snapshot: "AsyncFutureSnapshot") -> "AsyncFutureSnapshot":
        """Until one of its calls has an answer. Returns what to go on from: after a while, another than before."""
        asked = snapshot.pending_call_ids
        if self._queued and self._call is not None and self._call.is_kept:
            await self._take_snapshot(snapshot)
            await self._session.unsaved.save()
        self._start_queued()
        if not self._has_answer(asked):
            await self._wait_for_answer(asked, RECORD_SECONDS)
        if not self._has_answer(asked) and self._call is not None and not self._call.is_kept:
            await self._take_snapshot(snapshot)
            self._session.calls.keep(self._call)
        if not self._has_answer(asked):
            await self._wait_for_answer(asked, PARK_SECONDS)
        if self._has_answer(asked):
            return snapshot
        return await self._park(snapshot, asked)

    async def _park(self, snapshot: "AsyncFutureSnapshot", asked: list[int]) -> "AsyncFutureSnapshot":
        """Let the worker go until there is an answer."""
        await self._take_snapshot(snapshot)
        if self._parts.parked_bytes() > self._limits.parked_bytes_in_all:
            raise ScriptFailure("ParkingFull", "Too much is parked already for this script to wait. Try again later.")
        await self._let_worker_go()
        log.debug("script_parked", calls=self._calls, bytes=len(self._snapshot or b""))
        while not self._has_answer(asked):
            await self._wait_for_answer(asked, None)
        loaded = await self._load()
        if not isinstance(loaded, type(snapshot)):
            raise ScriptFailure("SnapshotLost", "The script cannot go on from where it waited.")
        return loaded

    async def _take_snapshot(self, snapshot: "AsyncFutureSnapshot") -> None:
        self._snapshot = await asyncio.to_thread(snapshot.dump)  # some megabytes take a while
        waiting = set(snapshot.pending_call_ids)
        calls = [*self._pending.values(), *self._queued]
        self._at_snapshot = [call for call in calls if call.number in waiting]
        self._mark()

    def _mark(self) -> None:
        if self._call is not None and self._call.is_kept and self._call.call_id is not None:
            self._session.unsaved.mark(self._call.kept_as, self._call.call_id)

    def _has_answer(self, asked: list[int]) -> bool:
        return any(number in self._pending and self._pending[number].answer is not None for number in asked)

    async def _wait_for_answer(self, asked: list[int], seconds: float | None) -> None:
        self._answered = asyncio.get_running_loop().create_future()
        if self._has_answer(asked):
            return
        with suppress(TimeoutError):
            await (self._answered if seconds is None else within(self._clock, seconds, self._answered))

    # Its calls.

    def _start_queued(self) -> None:
        queued, self._queued = self._queued, []
        for call in queued:
            self._pending[call.number] = call
            self._work.spawn(self._serve(call), name=call.function)

    async def _serve(self, call: PendingCall, *, is_restored: bool = False) -> None:
        async with self._room:
            try:
                call.answer = returned(await self._ask(call, is_restored=is_restored))
            except EmceepeeError as error:
                call.answer = await exception_for(call, error, self._session, self._parts.tools)
            except Exception as error:
                log.error("script_call_failed", function=call.function, error=f"{type(error).__name__}: {error}")
                call.answer = raised("RuntimeError", f"{call.function} failed inside emceepee; its log says more.")
        self._mark()
        if self._answered is not None:
            resolve(self._answered, None)

    async def _ask(self, call: PendingCall, *, is_restored: bool) -> Any:
        """Raises: EmceepeeError."""
        if call.wakes_at is not None:
            left = (datetime.fromisoformat(call.wakes_at) - self._clock.now()).total_seconds()
            if left > 0:
                await self._clock.sleep(left)
            return None
        tools, session = self._parts.tools, self._session
        if is_restored and not tools.is_repeatable(call.function):
            if session.tasks.find(call.call_id) is None:
                raise EmceepeeError(_MAY_HAVE_RUN)
            return value_of(call, await self._task_answer(call.call_id))
        answer = await tools.call(
            call.function,
            call.arguments,
            session,
            caller=self._caller,
            parent=None if self._call is None else self._call.span,
            call_id=call.call_id,
        )
        if answer.task_id is not None:
            if self._call is not None:
                session.calls.promote_for_inner_call(self._call)
            answer = await self._task_answer(answer.task_id)
        return value_of(call, answer)

    async def _task_answer(self, task_id: str) -> InnerAnswer:
        """Raises: EmceepeeError."""
        task: Task = await self._session.tasks.wait_until_finished(task_id, None)
        if task.error is not None:
            raise EmceepeeError(str(task.error["message"]))
        if task.result is None:
            raise EmceepeeError(f"its task was {task.status}.")
        return InnerAnswer(value=task.result, is_raw=task.method == "tools/call")

    # Its worker.

    async def _take_worker(self, *, is_checked: bool) -> Worker:
        left = self._limits.script_compute_seconds - self._computed
        if left <= 0:
            most = self._limits.script_compute_seconds
            raise ScriptFailure("TimeoutError", f"The script computed for more than {most:g} s, so it was ended.")
        self._worker = await self._parts.workers.take(self._modules.external(), seconds=left, is_checked=is_checked)
        return self._worker

    async def _let_worker_go(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()

    def _print(self, stream: str, text: str) -> None:
        self._log.write(text)

    async def _close(self) -> None:
        """Its calls are given up; unless another process goes on with it, and with them."""
        await self._let_worker_go()
        is_left = self._call is not None and self._call.state.stage is CallStage.LEFT
        open_ids = self.inner_ids
        await self._work.close(within=CLOSE_TASKS_SECONDS)
        if not is_left:
            for call_id in open_ids:
                if self._session.tasks.find(call_id) is not None:
                    self._session.calls.cancel_task(call_id)


def _hint(name: str) -> str:
    return "Use await asyncio.sleep(seconds)." if name == "time.sleep" else ""
