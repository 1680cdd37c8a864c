"""Execution of a script in the sandbox: one worker per stretch between two waits, and the total compute time."""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from emceepee.clock import Clock
from emceepee.codemode.bindings import MODULE
from emceepee.codemode.call_queue import CallQueue
from emceepee.codemode.failures import ScriptFailure, failure_of, line_at, only_returns, problems_of, with_awaits
from emceepee.codemode.script_log import ScriptLog
from emceepee.codemode.script_workers import GRACE_SECONDS, ScriptWorker, ScriptWorkers
from emceepee.state.limits import Limits

if TYPE_CHECKING:
    from pydantic_monty import (
        AsyncFunctionSnapshot,
        AsyncFutureSnapshot,
        AsyncNameLookupSnapshot,
        AsyncSnapshot,
        MontyComplete,
        MontyError,
    )

    Stop = AsyncFutureSnapshot | MontyComplete  # the end of a stretch: the script waits or has finished

PRELUDE = f"import asyncio, json, {MODULE}\n"  # modules that scripts need not import
_MODULES = ("import", "import_stubs")


class Execution:
    """One script's execution. Its requests go to the queue and its output to the log."""

    def __init__(
        self,
        workers: ScriptWorkers,
        queue: CallQueue,
        log: ScriptLog,
        *,
        principal: str,
        clock: Clock,
        limits: Limits,
        computed: float,
    ) -> None:
        self.computed = computed  # seconds, including the conversion of values to and from the sandbox
        self.source = ""  # as executed: with the prelude and the inserted awaits
        self._workers, self._queue, self._log = workers, queue, log
        self._principal, self._clock, self._limits = principal, clock, limits
        self._worker: ScriptWorker | None = None

    @property
    def worker_pid(self) -> int | None:
        return None if self._worker is None else self._worker.pid

    async def begin(self, code: str) -> "Stop":
        """Check the script, then run it. Insert missing awaits if nothing else is wrong. Raises: MontyError."""
        from pydantic_monty import MontyTypingError

        code, is_checked, refusal = PRELUDE + code, True, None
        worker = await self._take_worker(is_checked=True)
        while True:
            self.source = code
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

    async def load(self, snapshot: bytes) -> "Stop":
        """Continue from a snapshot. Raises: MontyError."""
        worker = await self._take_worker(is_checked=False)
        return await self._advance(worker.load(snapshot, self._print))

    async def resume(self, waiting: "AsyncFutureSnapshot", answers: dict[int, Any]) -> "Stop":
        """Raises: MontyError."""
        return await self._advance(waiting.resume(answers))

    async def let_worker_go(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            await worker.close()

    def failure_of(self, error: "MontyError") -> ScriptFailure:
        seconds, hints = self._limits.script_compute_seconds, self._queue.modules.hints
        return failure_of(error, before=PRELUDE.count("\n"), seconds=seconds, hints=hints)

    def line_of(self, stopped: "AsyncFunctionSnapshot | AsyncNameLookupSnapshot | AsyncFutureSnapshot") -> int | None:
        """Return the line of the script at which it stopped, if known."""
        return line_at(self.source, stopped.position, before=PRELUDE.count("\n"))

    async def _take_worker(self, *, is_checked: bool) -> ScriptWorker:
        most = self._limits.script_compute_seconds
        if self.computed >= most:
            raise _too_long(most)
        modules, left = self._queue.modules.external(), most - self.computed
        self._worker = await self._workers.take(self._principal, modules, seconds=left, is_checked=is_checked)
        return self._worker

    async def _advance(self, step: "Awaitable[AsyncSnapshot]") -> "Stop":
        """Run the script until it waits as a whole or has ended."""
        from pydantic_monty import AsyncFutureSnapshot, MontyComplete

        while True:
            began = self._clock.monotonic()
            snapshot = await step
            self.computed += self._clock.monotonic() - began
            if isinstance(snapshot, AsyncFutureSnapshot | MontyComplete):
                return snapshot
            if self.computed > (most := self._limits.script_compute_seconds) + GRACE_SECONDS:
                raise _too_long(most, self.line_of(snapshot))
            step = self._answer(snapshot)

    async def _answer(self, asked: "AsyncFunctionSnapshot | AsyncNameLookupSnapshot") -> "AsyncSnapshot":
        from pydantic_monty import AsyncNameLookupSnapshot

        if isinstance(asked, AsyncNameLookupSnapshot):
            return await asked.resume()
        if asked.is_os_function and asked.function_name in _MODULES:
            return await asked.resume_auto()
        try:
            answer = await self._queue.answer(asked)
        except ScriptFailure as failure:
            failure.line = self.line_of(asked)
            raise
        return await asked.resume(answer)  # type: ignore[arg-type]  # of the names of exceptions it knows

    def _print(self, stream: str, text: str) -> None:
        self._log.write(text)


def _too_long(seconds: float, line: int | None = None) -> ScriptFailure:
    return ScriptFailure("TimeoutError", f"The script computed for more than {seconds:g} s, so it was ended.", line)
