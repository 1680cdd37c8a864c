"""Workers: the sandbox processes that run scripts. Each runs one stretch of one script and is never shared."""

import asyncio
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from emceepee.codemode.worker_slots import WorkerSlots
from emceepee.errors import Unsupported
from emceepee.lifecycle import CLOSE_TASKS_SECONDS, close_bounded
from emceepee.state.limits import Limits
from emceepee.telemetry.logs import EventLog

if TYPE_CHECKING:
    from pydantic_monty import AsyncMonty, AsyncMontySession, AsyncSnapshot, ExternalModule, PrintCallback

log = EventLog("codemode")
DEEPEST_CALL = 300  # frames
GRACE_SECONDS = 1.0  # after the compute limit, before a worker that does not stop by itself is killed
CALLS_PER_SCRIPT = 100
SUSPENSIONS_PER_CALL = 4  # the call, its answer, and other requests to the host in between
LEAST_SUSPENSIONS = 1000
# Resource limits set to zero for a worker: it cannot open files or sockets, write files, start processes, or dump core.
_REFUSED = ("RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_CORE")


class ScriptWorker:
    """A process that runs one stretch of a script, until it is closed."""

    def __init__(self, session: "AsyncMontySession", on_end: Callable[[], None]) -> None:
        self._session, self._on_end = session, on_end

    async def begin(self, code: str, on_print: "PrintCallback", *, is_checked: bool) -> "AsyncSnapshot":
        """Raises: MontyError."""
        return await self._session.feed_start(code, print_callback=on_print, skip_type_check=not is_checked)

    async def load(self, snapshot: bytes, on_print: "PrintCallback") -> "AsyncSnapshot":
        """Raises: MontyError."""
        return await self._session.load_snapshot(snapshot, print_callback=on_print)

    @property
    def pid(self) -> int | None:
        return self._session.worker_pid

    async def close(self) -> None:
        try:
            await close_bounded(
                self._session.__aexit__(None, None, None), within=CLOSE_TASKS_SECONDS, what="a worker of the sandbox"
            )
        finally:
            self._on_end()


class ScriptWorkers:
    """The workers of an installation. No worker starts before the first script, and no idle worker is in reserve."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pool: AsyncMonty | None = None
        self._opening = asyncio.Lock()
        self._slots = WorkerSlots(limits.script_workers, limits.script_workers_per_principal)

    async def take(
        self, principal: str, modules: "Mapping[str, ExternalModule]", *, seconds: float, is_checked: bool
    ) -> ScriptWorker:
        """Return a new worker as soon as the principal may have another one. Raises: Unsupported."""
        pool = await self.open()
        await self._slots.take(principal)
        try:
            session = await self._check_out(pool, modules, seconds=seconds, is_checked=is_checked)
        except BaseException:
            self._slots.give_back(principal)
            raise
        worker = ScriptWorker(session, lambda: self._slots.give_back(principal))
        if worker.pid is not None:
            _confine(worker.pid)
        return worker

    async def _check_out(
        self, pool: "AsyncMonty", modules: "Mapping[str, ExternalModule]", *, seconds: float, is_checked: bool
    ) -> "AsyncMontySession":
        limits = self._limits
        session = pool.checkout(
            limits={
                "max_feed_duration_secs": seconds,
                "max_memory": limits.script_memory_bytes,
                "max_recursion_depth": DEEPEST_CALL,
                "max_suspensions": LEAST_SUSPENSIONS + SUSPENSIONS_PER_CALL * CALLS_PER_SCRIPT,
            },
            type_check=is_checked,
            type_check_format="json" if is_checked else None,
            os_policy={"sleep": "call_host"},
            external_modules=modules,
        )
        await session.__aenter__()
        return session

    async def open(self) -> "AsyncMonty":
        """Load the sandbox if it is not loaded yet. Raises: Unsupported."""
        async with self._opening:
            if self._pool is None:
                self._pool = await _open_pool(self._limits)
            return self._pool

    async def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            await close_bounded(
                pool.__aexit__(None, None, None), within=CLOSE_TASKS_SECONDS, what="the workers of the sandbox"
            )


async def _open_pool(limits: Limits) -> "AsyncMonty":
    try:
        from pydantic_monty import AsyncMonty

        pool = AsyncMonty(
            min_processes=0,
            max_processes=limits.script_workers,
            max_checkouts_per_worker=1,  # to keep one script's data away from the next script
            feed_duration_limit_grace=GRACE_SECONDS,
        )
        await pool.__aenter__()
    except (ImportError, FileNotFoundError) as error:
        log.warning("sandbox_missing", error=str(error))
        raise Unsupported(
            "Code mode is not available here: the package pydantic-monty is missing, or has no build for this platform "
            f"({sys.platform}). Use execute_tool, or install it and start emceepee again."
        ) from None
    return pool


def _confine(pid: int) -> None:
    """Restrict a worker beyond the sandbox itself, so that an escape finds nothing to open. Only on Linux."""
    if sys.platform != "linux":
        return
    import resource

    for name in _REFUSED:
        try:
            resource.prlimit(pid, getattr(resource, name), (0, 0))
        except (OSError, ValueError) as error:  # it has ended already, or the system forbids it
            log.debug("worker_not_confined", limit=name, error=str(error))


def sandbox_version() -> Any:
    """Return the sandbox version that writes snapshots: another version may be unable to read them."""
    import pydantic_monty

    return pydantic_monty.__version__
