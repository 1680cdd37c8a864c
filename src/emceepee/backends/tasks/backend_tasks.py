"""The tasks that a backend runs itself for one connection: which calls may become tasks, and the follower of each."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.caller_errors import request_failed
from emceepee.backends.catalog import Catalog, ListKind
from emceepee.backends.link import Link, LinkError, LinkFailure, Listener, RpcError
from emceepee.backends.tasks.follower import TaskFollower
from emceepee.backends.tasks.task_messages import STATUS_CHANGED, CreatedTask, as_created, read_created, related_task
from emceepee.clock import Clock, give_up_after
from emceepee.lifecycle import TaskOwner
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject

T = TypeVar("T")
SLOW_SECONDS = 5.0  # a tool that took longer runs as a task next time, if possible
MOST_SLOW_TOOLS = 1000  # the limit of remembered tools
CREATION_SECONDS = 10.0  # to learn the id of the task to cancel after its call was cancelled
CANCEL_SECONDS = 2.0  # to notify a backend whose connection is closing

RunOnce = Callable[[Callable[[Link], Awaitable[Any]]], Awaitable[Any]]


class CallPlan(Protocol):
    """Facts that are known about a call before it is sent."""

    @property
    def seconds(self) -> float:
        """The call's timeout."""
        ...

    @property
    def is_impatient(self) -> bool:
        """Whether the caller does not intend to wait for the result."""
        ...

    @property
    def is_unsent(self) -> bool:
        """Whether the call is stored as unsent. The observer must mark it as sent before a link sends it."""
        ...


class NoPlan:
    """The plan of a call about which nothing is known."""

    seconds = 600.0
    is_impatient = False
    is_unsent = False


NO_PLAN = NoPlan()


def offers_tasks(link: Link) -> bool:
    """Return whether a 2025-11-25 backend runs tool calls as tasks. A 2026-07-28 backend decides that for each call."""
    found: Any = link.facts.capabilities.get("tasks")
    for key in ("requests", "tools", "call"):
        found = found.get(key) if isinstance(found, dict) else None
    return isinstance(found, dict) and not link.facts.is_modern


class BackendTasks:
    """The backend tasks of one connection, across all its links."""

    def __init__(
        self,
        server: str,
        run_once: RunOnce,
        listener: Listener,
        tasks: TaskOwner,
        clock: Clock,
        limits: Limits,
        *,
        outlive_link: bool,
    ) -> None:
        self._server, self._run_once, self._listener = server, run_once, listener
        self._owner, self._clock, self._limits = tasks, clock, limits
        self._outlive_link = outlive_link
        self._by_id: dict[str, TaskFollower] = {}
        self._slow: dict[str, None] = {}  # slow tools, the most recent last
        self._cancelling: set[asyncio.Task[None]] = set()
        self._link: Link | None = None
        self.is_offered = False  # by the link

    def __len__(self) -> int:
        return len(self._by_id)

    # Link lifecycle.

    def attach(self, link: Link) -> None:
        self._link, self.is_offered = link, offers_tasks(link)
        for follower in self._followers():
            follower.report_again()

    def detach(self) -> None:
        link, self._link = self._link, None
        if link is None or self._outlive_link:
            return
        reason = link.closed.result().reason if link.closed.done() else "the connection was closed"
        for follower in self._followers():
            follower.end(request_failed(self._server, "tools/call", LinkError(LinkFailure.CLOSED, reason)))

    def _followers(self) -> list[TaskFollower]:
        return list(self._by_id.values())

    # Calls.

    async def call(
        self, link: Link, params: JsonObject, origin: object, catalog: Catalog, plan: CallPlan
    ) -> JsonObject:
        """Call a tool of a 2025-11-25 backend that offers tasks.

        The call becomes a task if the tool requires that, or if it supports tasks and may take long.

        Raises:
            RpcError, LinkError
        """
        name = str(params.get("name"))
        support = await _task_support(catalog, name)
        is_long = plan.is_impatient or name in self._slow
        if support == "required" or (support == "optional" and is_long):
            return await self._begin_task(link, params, origin, plan)
        began = self._clock.monotonic()
        try:
            return await link.request("tools/call", params, origin=origin)
        finally:
            if support == "optional":
                self._remember(name, self._clock.monotonic() - began)

    async def _begin_task(self, link: Link, params: JsonObject, origin: object, plan: CallPlan) -> JsonObject:
        """Create the task in an asyncio task of its own.

        If the call is cancelled before the backend answers, the id of the backend's task must still be learned.
        """
        token = secrets.token_hex(8)
        meta = params.get("_meta") or {}
        task_params = {**params, "task": {"ttl": round(plan.seconds * 1000)}, "_meta": {**meta, "progressToken": token}}
        creating = self._owner.spawn(
            _outcome(link.request("tools/call", task_params, origin=origin)), name="tools/call"
        )
        try:
            result = await asyncio.shield(creating)
        except asyncio.CancelledError:
            self.cancel_task(self._cancel_created(link, creating))
            raise
        if isinstance(result, Exception):
            raise result
        return as_created(result, token)

    async def _cancel_created(self, link: Link, creating: "asyncio.Task[JsonObject | RpcError | LinkError]") -> None:
        try:
            async with give_up_after(self._clock, CREATION_SECONDS):
                result = await asyncio.shield(creating)
                if not isinstance(result, Exception) and isinstance(created := result.get("task"), dict):
                    await _outcome(link.request("tasks/cancel", {"taskId": created.get("taskId")}))
        except TimeoutError:
            creating.cancel()

    def _remember(self, tool: str, took: float) -> None:
        self._slow.pop(tool, None)
        if took > SLOW_SECONDS:
            self._slow[tool] = None
            if len(self._slow) > MOST_SLOW_TOOLS:
                del self._slow[next(iter(self._slow))]

    async def follow(self, created: CreatedTask, origin: object, *, is_modern: bool, tool: str) -> JsonObject:
        """Return the result of a call that the backend runs as a task. Raises: EmceepeeError."""
        began = self._clock.monotonic()
        try:
            task_id, first = read_created(created, is_modern=is_modern)
        except LinkError as error:
            raise request_failed(self._server, "tools/call", error) from error
        task = BackendTask(task_id=task_id, is_modern=is_modern, outlives_link=self._outlive_link, token=created.token)
        try:
            with self._register_follower(task, origin) as follower:
                return await follower.result(first)
        finally:
            if not is_modern:
                self._remember(tool, self._clock.monotonic() - began)

    async def resume(self, task: BackendTask, origin: object) -> JsonObject:
        """Return the result of a task that another process began. Raises: EmceepeeError."""
        with self._register_follower(task, origin) as follower:
            return await follower.result(None)

    def _register_follower(self, task: BackendTask, origin: object) -> "_FollowerRegistration":
        follower = TaskFollower(
            task,
            origin,
            server=self._server,
            requests=self,
            listener=self._listener,
            tasks=self._owner,
            clock=self._clock,
            limits=self._limits,
        )
        return _FollowerRegistration(self._by_id, follower)

    def leave(self, origin: object) -> None:
        """Leave the task of that call to another process."""
        for follower in self._followers():
            if follower.origin is origin:
                follower.leave()

    # The interface for followers.

    async def run_once(self, work: Callable[[Link], Awaitable[T]]) -> T:
        done: T = await self._run_once(work)
        return done

    def cancel_task(self, notification: Coroutine[Any, Any, None]) -> None:
        try:
            task = self._owner.spawn(notification, name="tasks/cancel")
        except RuntimeError:
            return  # already closed
        self._cancelling.add(task)
        task.add_done_callback(self._cancelling.discard)

    async def finish_cancelling(self) -> None:
        """Finish sending pending cancellations before the connection closes, because no later attempt is possible."""
        if self._cancelling and self._link is not None:
            await asyncio.wait(set(self._cancelling), timeout=CANCEL_SECONDS)

    # Messages that the backend sends unasked.

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        """Pass a request about a followed task to the task's follower, which answers it."""
        follower = self._by_id.get(related_task(params) or "") if self._by_id else None
        return None if follower is None else follower.take_request(key, method, params)

    def handle_status(self, method: str, params: JsonObject) -> bool:
        """Return whether the notification concerned only a followed task and has been handled."""
        follower = self._by_id.get(str(params.get("taskId"))) if method == STATUS_CHANGED else None
        if follower is not None:
            follower.handle_status(params)
        return follower is not None

    def origin_of(self, params: JsonObject) -> object | None:
        """Return the call that a notification belongs to, identified by its progress token or its task id."""
        token, task_id = params.get("progressToken"), related_task(params)
        for follower in self._followers():
            if follower.task.task_id == task_id or (token is not None and follower.task.token == token):
                return follower.origin
        return None


class _FollowerRegistration:
    """Registers a follower under its task's id for the duration of a `with` block."""

    def __init__(self, by_id: dict[str, TaskFollower], follower: TaskFollower) -> None:
        self._by_id, self._follower = by_id, follower

    def __enter__(self) -> TaskFollower:
        self._by_id[self._follower.task.task_id] = self._follower
        return self._follower

    def __exit__(self, *_: object) -> None:
        if self._by_id.get(self._follower.task.task_id) is self._follower:
            del self._by_id[self._follower.task.task_id]


async def _task_support(catalog: Catalog, name: str) -> str | None:
    """Return the tool's own `taskSupport` value, or None."""
    try:
        tools = catalog.known(ListKind.TOOLS) or await catalog.entries(ListKind.TOOLS)
    except (RpcError, LinkError):
        return None  # then the call is made like any other
    execution = next((tool.get("execution") for tool in tools if tool.get("name") == name), None)
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    return support if isinstance(support, str) else None


async def _outcome(request: Awaitable[JsonObject]) -> JsonObject | RpcError | LinkError:
    """Return errors as values, for requests that continue after their caller has left."""
    try:
        return await request
    except (RpcError, LinkError) as error:
        return error
