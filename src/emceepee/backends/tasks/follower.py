"""Follows one task of a backend to its end: performs the decisions of `step` and feeds their outcomes back.

Requests about the task use the current link. Work that waits for the user's answer outlives the link on which the
question arrived. If the caller is cancelled, the backend is notified, unless another follower will continue the task.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol, TypeVar, assert_never

from emceepee.backends.backend_task import BackendTask, OpenQuestion
from emceepee.backends.caller_errors import request_failed, task_failed
from emceepee.backends.link import Link, LinkError, LinkFailure, Listener, RpcError
from emceepee.backends.tasks.follower_step import (
    AskQuestion,
    CompleteCall,
    Decision,
    Event,
    FailCall,
    FetchResult,
    FollowerState,
    Inquiry,
    NoResultReason,
    PollAfter,
    QuestionAnswered,
    ReportStatus,
    StatusReceived,
    TaskRequestLost,
    TaskRequestRefused,
    TaskResultArrived,
    WithdrawQuestion,
    step,
)
from emceepee.backends.tasks.task_messages import Snapshot, read_snapshot
from emceepee.clock import Clock, Handle, give_up_after
from emceepee.errors import EmceepeeError, ExecutionFailed
from emceepee.futures import reject, resolve
from emceepee.lifecycle import TaskOwner
from emceepee.state.limits import Limits
from emceepee.telemetry import spans
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.spans import PhaseKind, phase
from emceepee.wire.json_rpc import result_message
from emceepee.wire.json_types import JsonObject

log = EventLog("backends")
T = TypeVar("T")
RETRY_SECONDS = 2.0  # between attempts to deliver an answer


class TaskRequests(Protocol):
    """The part of the connection that a follower needs."""

    async def run_once(self, work: Callable[[Link], Awaitable[T]]) -> T:
        """Run `work` on the link, and open one if needed. Raises: RpcError, LinkError, EmceepeeError."""
        ...

    def cancel_task(self, notification: Coroutine[Any, Any, None]) -> None:
        """Run `notification`, which notifies the backend, even if everything is being closed."""
        ...


class TaskFollower:
    """Follows one task. `result` does so until its end."""

    def __init__(
        self,
        task: BackendTask,
        origin: object,
        *,
        server: str,
        requests: TaskRequests,
        listener: Listener,
        tasks: TaskOwner,
        clock: Clock,
        limits: Limits,
    ) -> None:
        """`tasks` owns the work that continues after the waiting caller has left."""
        self.task, self.origin = task, origin
        self._server, self._requests, self._listener = server, requests, listener
        self._owner, self._clock, self._limits = tasks, clock, limits
        self._state = FollowerState(is_modern=task.is_modern)
        self._outcome: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._timer: Handle | None = None
        self._polling: asyncio.Task[None] | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._question_tasks: dict[int | str, asyncio.Task[None]] = {}
        self._is_left = self._is_cancelled = False
        self._span = spans.current()  # the call's span: its trace includes the requests about the task

    async def result(self, first: Snapshot | None) -> JsonObject:
        """Return the raw result of the call.

        `first` is the backend's latest report. Without it, the follower asks the backend.

        Raises:
            EmceepeeError
        """
        for question in list(self.task.questions.values()):
            self.take_request(*question)
        if first is None:
            self._plan_poll(0)
        else:
            self._listener.handle_task(self.task, self.origin)
            self.handle(StatusReceived(first))
        try:
            with phase(PhaseKind.CALL, self._server):
                return await self._outcome
        except asyncio.CancelledError:
            if not self._is_left:
                self._cancel_remote()
            raise
        finally:
            self._close()

    def leave(self) -> None:
        """Make cancellation of the wait leave the task running, because another process will follow it."""
        self._is_left = True

    def end(self, error: EmceepeeError) -> None:
        """Fail the call, because no result can arrive any more."""
        reject(self._outcome, error)

    def report_again(self) -> None:
        """Report the task again after a reconnect."""
        self._listener.handle_task(self.task, self.origin)

    # Messages that the backend sends unasked.

    def handle_status(self, params: JsonObject) -> None:
        with suppress(LinkError):
            self.handle(StatusReceived(read_snapshot(params, is_modern=self.task.is_modern), is_pushed=True))

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        """Answer a request of the backend over the link that is current when the answer is ready. Repeats get one
        answer.

        Return the task that answers it. Return None if too many requests are already waiting; the link then applies its
        own limit.
        """
        if (known := self._question_tasks.get(key)) is not None:
            return known
        if len(self._question_tasks) >= self._limits.questions_per_server:
            return None
        self._change(replace(self.task, questions={**self.task.questions, key: OpenQuestion(key, method, params)}))
        return self._start_question(key, self._answer_request(key, method, params))

    # Deciding and acting.

    def handle(self, event: Event) -> None:
        self._state, decisions = step(self._state, event)
        for decision in decisions:
            self._carry_out(decision)

    def _carry_out(self, decision: Decision) -> None:
        match decision:
            case PollAfter(seconds):
                self._plan_poll(seconds)
            case FetchResult():
                if self._fetching is not None:
                    self._fetching.cancel()
                self._fetching = self._spawn(self._fetch(), "tasks/result")
            case AskQuestion(key, question):
                self._start_question(key, self._answer_input(key, question))
            case WithdrawQuestion(key):
                if (task := self._question_tasks.get(key)) is not None:
                    task.cancel()
            case ReportStatus():
                self._change(replace(self.task, message=self._state.message))
            case CompleteCall(result):
                resolve(self._outcome, result)
            case FailCall(reason, error):
                self._fail(reason, error)
            case _:
                assert_never(decision)

    def _fail(self, reason: NoResultReason, error: JsonObject | None) -> None:
        if reason is NoResultReason.ERROR and error is not None:
            reject(self._outcome, request_failed(self._server, "tools/call", RpcError(error)))
        else:
            reject(self._outcome, task_failed(self._server, reason.name.lower(), self._state.message, error))

    def _change(self, task: BackendTask) -> None:
        self.task = task
        self._listener.handle_task(task, self.origin)

    # Requests to the backend.

    def _plan_poll(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(seconds, self._begin_poll)

    def _begin_poll(self) -> None:
        if self._polling is None or self._polling.done():
            self._polling = self._spawn(self._poll(), "tasks/get")

    async def _poll(self) -> None:
        try:
            async with give_up_after(self._clock, self._limits.request_seconds):
                status = await self._request("tasks/get")
            event: Event = StatusReceived(read_snapshot(status, is_modern=self.task.is_modern))
        except RpcError as error:
            event = TaskRequestRefused(Inquiry.STATUS, error.error)
        except (LinkError, EmceepeeError, TimeoutError) as error:
            log.debug("task_not_followed", server=self._server, error=str(error) or type(error).__name__)
            event = TaskRequestLost(Inquiry.STATUS)
        self._polling = None
        self.handle(event)

    async def _fetch(self) -> None:
        try:
            event: Event = TaskResultArrived(await self._request("tasks/result", origin=self.origin))
        except RpcError as error:
            event = TaskRequestRefused(Inquiry.RESULT, error.error)
        except (LinkError, EmceepeeError) as error:
            log.debug("task_result_missing", server=self._server, error=str(error))
            event = TaskRequestLost(Inquiry.RESULT)
        self.handle(event)

    async def _request(self, method: str, *, origin: object | None = None, **params: Any) -> JsonObject:
        """Raises: RpcError, LinkError, EmceepeeError."""

        async def send(link: Link) -> JsonObject:
            if link.facts.is_modern != self.task.is_modern:
                raise LinkError(
                    LinkFailure.PROTOCOL, "it is connected in another era now, in which the task is not known"
                )
            with spans.served(self._span):
                return await link.request(method, {"taskId": self.task.task_id, **params}, origin=origin)

        return await self._requests.run_once(send)

    def _cancel_remote(self) -> None:
        if not self._is_cancelled:
            self._is_cancelled = True
            self._requests.cancel_task(self._send_cancel())

    async def _send_cancel(self) -> None:
        spans.serve(None)
        try:
            async with give_up_after(self._clock, self._limits.request_seconds):
                await self._request("tasks/cancel")
        except (RpcError, LinkError, EmceepeeError, TimeoutError) as error:
            log.debug("task_not_cancelled", server=self._server, error=str(error) or type(error).__name__)

    # Questions of the backend.

    def _start_question(self, key: int | str, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = self._question_tasks[key] = self._spawn(work, "question")
        task.add_done_callback(lambda _: self._remove_question(key))
        return task

    def _remove_question(self, key: int | str) -> None:
        self._question_tasks.pop(key, None)
        if key in self.task.questions and not self._outcome.done() and not self._is_left:
            open_questions = {other: question for other, question in self.task.questions.items() if other != key}
            self._change(replace(self.task, questions=open_questions))

    async def _answer_input(self, key: str, question: JsonObject) -> None:
        """Answer a question that a 2026-07-28 backend asks in the status of its task."""
        params, seconds = question.get("params"), self._limits.modern_question_seconds
        arguments = params if isinstance(params, dict) else {}
        try:
            answer = await self._listener.handle_request(
                str(question.get("method")), arguments, self.origin, seconds=seconds
            )
        except RpcError as refusal:
            if self._is_left:
                return  # the backend will ask the task's next follower again
            # The only way to refuse is to cancel the task.
            self._cancel_remote()
            self.end(ExecutionFailed(f'Server "{self._server}" asked a question that got no answer: {refusal}'))
            return
        await self._deliver_answer(lambda: self._request("tasks/update", inputResponses={key: answer}))
        self.handle(QuestionAnswered(key))

    async def _answer_request(self, key: int | str, method: str, params: JsonObject) -> None:
        """Answer a 2025-11-25 backend's request about its task."""
        try:
            answer = result_message(key, await self._listener.handle_request(method, params, self.origin))
        except RpcError as refusal:
            if self._is_left:
                return
            answer = {"jsonrpc": "2.0", "id": key, "error": refusal.error}

        async def send(link: Link) -> None:
            await link.send_answer(answer)

        await self._deliver_answer(lambda: self._requests.run_once(send))
        self.handle(QuestionAnswered(str(key)))

    async def _deliver_answer(self, deliver: Callable[[], Awaitable[object]]) -> None:
        """Retry until the answer is delivered, despite lost connections."""
        while True:
            try:
                await deliver()
            except RpcError as error:
                log.debug("answer_refused", server=self._server, error=str(error))
            except (LinkError, EmceepeeError) as error:
                if not isinstance(error, LinkError) or error.failure is not LinkFailure.SESSION_LOST:
                    await self._clock.sleep(RETRY_SECONDS)
                    continue
            return

    # Lifecycle.

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> "asyncio.Task[None]":
        async def detached() -> None:
            spans.serve(None)  # one phase covers the whole wait; the requests themselves are its parts
            await work

        try:
            return self._owner.spawn(detached(), name=name)
        except RuntimeError:
            work.close()
            raise

    def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._state = replace(self._state, is_over=True)
        for task in (self._polling, self._fetching, *self._question_tasks.values()):
            if task is not None:
                task.cancel()
