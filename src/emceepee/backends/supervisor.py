"""Keeps one connection open: performs the effects of `state.connection_step`, and feeds their outcomes back to it.

The connection's state is one value, `state`. Everything that happens is an event. `step` returns the next state and the
effects, which this module performs without making decisions. Example, a server that crashes once while a call waits:

the process exits    LinkEnded → AnnounceEnd (process_crashed, server_disconnected; questions are rejected)
                                     CloseLink (the calls under way fail)             Closing(then=Pausing)
    the link is closed   Released  → AnnounceRetry (restarting), StartTimer           Pausing
    a call arrives       Needed    → StopTimer, Dial                                  Opening
    a link is open       Opened    → AnnounceUp (restarted, server_reconnected)
                                     AdmitWaiters (the call is sent)                  Up

Only two operations take time: opening a link and closing one. At most one of them is in progress: `_work`. All other
operations are immediate, so a link always has exactly one owner.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, assert_never

from emceepee.backends.caller_errors import misconfigured, unavailable
from emceepee.backends.connection_events import ConnectionEvents
from emceepee.backends.link import Link, LinkError, LinkFailure, NoAccess, RpcError
from emceepee.backends.negotiation import mode_hint
from emceepee.backends.process.process_slots import NoRoom
from emceepee.backends.spec import BackendSpec, StdioTarget, UnusableTarget
from emceepee.clock import Clock, Handle, give_up_after
from emceepee.errors import BackendDisconnected
from emceepee.futures import reject, resolve
from emceepee.lifecycle import CLOSE_LINK_SECONDS, TaskOwner, close_bounded
from emceepee.state.connection.connection_effects import (
    AbandonDial,
    AdmitWaiters,
    AnnounceEnd,
    AnnounceFailure,
    AnnounceGivingUp,
    AnnounceRetry,
    AnnounceUp,
    CloseLink,
    Dial,
    Effect,
    RejectWaiters,
    StartHolding,
    StartTimer,
    StopTimer,
)
from emceepee.state.connection.connection_state import (
    UNUSED,
    Closing,
    ConnectionHistory,
    ConnectionState,
    Down,
    LinkEnd,
    LinkEndKind,
    Up,
)
from emceepee.state.connection.connection_step import (
    CloseAsked,
    DialFailed,
    Event,
    LinkEnded,
    LoginEnded,
    Needed,
    Opened,
    ReconnectAsked,
    Released,
    RequestsFinished,
    RestAsked,
    RetireAsked,
    StartAsked,
    TimerFired,
    first_state,
    step,
)
from emceepee.state.connection.retry import RetryCount, RetryPolicy
from emceepee.state.limits import Limits
from emceepee.telemetry import spans
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject

log = EventLog("backends")


class LinkOwner(Protocol):
    """The connection, which prepares a new link for use."""

    async def prepare_link(self, link: Link) -> None: ...
    def detach_link(self) -> None: ...
    def stderr_of_dial(self) -> str: ...

    @property
    def is_listening(self) -> bool:
        """Whether anyone listens for unsolicited messages of the backend. If so, the link is not closed as idle."""
        ...


class _Use:
    """Counts requests in flight. A supervisor has one reusable instance, so that a request allocates no object."""

    __slots__ = ("_supervisor",)

    def __init__(self, supervisor: "Supervisor") -> None:
        self._supervisor = supervisor

    def __enter__(self) -> None:
        supervisor = self._supervisor
        supervisor.requests += 1
        if supervisor.idle_timer is not None:
            supervisor.idle_timer.cancel()
            supervisor.idle_timer = None

    def __exit__(self, *_: object) -> None:
        supervisor = self._supervisor
        supervisor.requests -= 1
        if not supervisor.requests:
            supervisor.handle_unused()


class Supervisor:
    """Owns the link of a connection. `ready()` returns a link or raises; `state` is the current state."""

    def __init__(
        self,
        spec: BackendSpec,
        dial: Callable[[object | None], Awaitable[Link]],
        events: ConnectionEvents,
        owner: LinkOwner,
        *,
        tasks: TaskOwner,
        clock: Clock,
        limits: Limits,
        spread: Callable[[], float],
    ) -> None:
        self._spec, self._dial, self._events, self._owner = spec, dial, events, owner
        self._tasks, self._clock, self._limits, self._spread = tasks, clock, limits, spread
        self._idle_stop = limits.idle_stop_seconds if spec.idle_stop is None else spec.idle_stop
        self._state = _first_state(spec, limits)
        self.link: Link | None = None  # set while the state is Up
        self._work: asyncio.Task[None] | None = None
        self._timer: Handle | None = None
        self._waiters: asyncio.Future[Link] | None = None  # shared by all callers that wait for the next link
        self._use = _Use(self)
        self.requests = 0  # in flight
        self.idle_timer: Handle | None = None
        self._identity: str | None = None  # from the last link, as are the next two
        self._resumption: object | None = None
        self._last_process: JsonObject | None = None
        self._restarts = 0

    def __repr__(self) -> str:
        then = f" then {type(self._state.then).__name__}" if isinstance(self._state, Closing) else ""
        link = f" {self.link!r}" if self.link else ""
        return f"<Supervisor {self._spec.name} {type(self._state).__name__}{then}{link} requests={self.requests}>"

    @property
    def state(self) -> ConnectionState:
        return self._state

    @property
    def process(self) -> JsonObject | None:
        """The process behind the link, or the last one."""
        process = self.link.process() if self.link else self._last_process
        return None if process is None else process | {"restarts": self._restarts}

    @property
    def resumption(self) -> object | None:
        """The resumption of the link, or of the last one."""
        return self._resumption if self.link is None else self.link.resumption

    def resume_with(self, resumption: object) -> None:
        """Make the first link resume the session that another process left."""
        if self.link is None and self._resumption is None:
            self._resumption = resumption

    @property
    def live(self) -> Link | None:
        """The link if it is currently usable, else None."""
        link, state = self.link, self._state
        if link is None or link.closed.done() or type(state) is not Up or state.is_retiring:
            return None
        return link

    # Requests from the connection.

    def start(self) -> None:
        self._handle(StartAsked())

    async def ready(self, *, may_retry: bool = True) -> Link:
        """Raises: BackendDisconnected."""
        if (link := self.live) is not None:
            return link
        if self.link is not None:
            self._check_end(self.link)
        if self._waiters is None:
            self._waiters = asyncio.get_running_loop().create_future()
        waiting = self._waiters
        self._handle(Needed(may_retry))
        return await asyncio.shield(waiting)

    async def reconnect(self) -> Link:
        """Replace the link. Concurrent calls share one replacement. Raises: BackendDisconnected."""
        if not isinstance(self._spec.target, UnusableTarget):
            self._handle(ReconnectAsked())
        if isinstance(self._state, Closing):
            await self._wait_for_work()
        return await self.ready()

    def retire(self, link: Link) -> None:
        """Replace the link once its requests have ended. New requests wait for the next link."""
        if self.link is link:
            self._handle(RetireAsked())
            if not self.requests:
                self._handle(RequestsFinished())

    def end_login(self, reason: str | None) -> None:
        """Handle the end of the awaited login. `reason` is why it failed, or None."""
        self._handle(LoginEnded(reason))

    async def rest(self) -> None:
        """Close the link, if any, until the next use."""
        self.begin_rest()
        await self._wait_for_work()

    def begin_rest(self, end: LinkEnd = UNUSED) -> None:
        """Like `rest`, but return before the link is closed."""
        self._handle(RestAsked(end))

    async def close(self) -> None:
        self._handle(CloseAsked())
        await self._wait_for_work()

    def report_lost(self, link: Link, reason: str) -> None:
        """End a link whose loss was first noticed by a request."""
        link.end(LinkEnd(LinkEndKind.LOST, reason))

    def in_use(self) -> _Use:
        """Return a context manager for a request. It protects the link from being replaced or closed as idle."""
        return self._use

    def handle_unused(self) -> None:
        """Handle the end of the last request. After a long idle time, close the link until the next use."""
        state = self._state
        if type(state) is Up:
            if state.is_retiring:
                self._handle(RequestsFinished())
            elif seconds := self._idle_stop:
                self.idle_timer = self._clock.call_later(seconds, self._rest_if_idle)

    def _rest_if_idle(self) -> None:
        self.idle_timer = None
        if self.requests:
            return
        if self._owner.is_listening:
            self.handle_unused()  # check again after the same time
        else:
            self._handle(RestAsked())

    async def _wait_for_work(self) -> None:
        if self._work is not None:
            await asyncio.wait({self._work}, timeout=CLOSE_LINK_SECONDS * 2)

    def next_retry_ms(self) -> int | None:
        retry_at = self._state.view.retry_at
        return None if retry_at is None else max(round((retry_at - self._clock.now()).total_seconds() * 1000), 0)

    # Performing the effects of a step.

    def _handle(self, event: Event) -> None:
        before = self._state
        self._state, effects = step(before, event)
        if self._state is not before:
            self._events.signal_change()
        for effect in effects:
            self._carry_out(effect)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Dial():
                self._begin(self._open_link(), "open")
            case AbandonDial():
                if self._work is not None:
                    self._work.cancel()
            case CloseLink():
                self._detach_link(effect.end)
            case StartTimer():
                self._start_timer(effect.seconds)
            case StartHolding():
                self._start_timer(self._limits.connect_seconds)
            case StopTimer():
                if self._timer is not None:
                    self._timer.cancel()
            case AdmitWaiters():
                waiters, self._waiters = self._waiters, None
                if waiters is not None and self.link is not None:
                    resolve(waiters, self.link)
            case RejectWaiters():
                waiters, self._waiters = self._waiters, None
                if waiters is not None:
                    reject(waiters, self._refusal())
            case AnnounceUp():
                self._announce_up(effect.tries)
            case AnnounceEnd():
                self._last_process = self.link.process() if self.link else None
                self._events.announce_end(effect.end, self._last_process)
            case AnnounceFailure():
                self._events.log_failure(effect.reason, effect.tries)
            case AnnounceRetry():
                self._events.announce_retry(effect.retry)
            case AnnounceGivingUp():
                self._events.announce_giving_up(effect.reason, effect.attempts)
            case _:
                assert_never(effect)

    def _refusal(self) -> BackendDisconnected:
        if isinstance(self._spec.target, UnusableTarget):
            return misconfigured(self._spec.name, self._spec.target.reason)
        return unavailable(self._spec.name, self._state.view, next_retry_ms=self.next_retry_ms())

    def _start_timer(self, seconds: float) -> None:
        self._timer = self._clock.call_later(seconds, lambda: self._handle(TimerFired()))

    def _announce_up(self, tries: int | None) -> None:
        link = self.link
        assert link is not None  # it has just been opened
        is_same = link.identity is not None and link.identity == self._identity
        self._identity = link.identity
        process = link.process()
        if tries is None:
            self._events.announce_connected(process, link.facts.capabilities)
        else:
            self._restarts += process is not None
            self._events.announce_reconnected(process, tries=tries, is_same=is_same)

    # Opening and closing a link.

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self._work = self._tasks.spawn(work, name=name)
        self._work.add_done_callback(self._work_ended)

    def _work_ended(self, work: "asyncio.Task[None]") -> None:
        """Handle a cancelled task. The coroutine cannot: a task cancelled before its first step never runs it."""
        if work.cancelled():
            self._handle(Released(self._clock.now()))

    async def _open_link(self) -> None:
        spans.serve(None)  # the link's own work, such as health checks, outlives the request that needed the link
        try:
            link = await self._dial_and_prepare()
        except (RpcError, LinkError, TimeoutError) as error:
            wants_login = isinstance(error, NoAccess) and error.wants_person
            self._dial_failed(
                self._words(error),
                is_final=self._is_permanent(error),
                wants_login=wants_login,
                tries_on_use=isinstance(error, NoRoom),
            )
        except Exception as error:  # a bug of ours must not leave callers waiting forever
            what = f"{type(error).__name__}: {error}"
            log.error("supervisor_failed", server=self._spec.name, error=what)
            self._dial_failed(f"emceepee failed to keep it connected ({what})", is_final=True)
        else:
            self.link = link
            self._handle(Opened(self._clock.now()))
            link.closed.add_done_callback(lambda _: self._check_end(link))
            if not self.requests:
                self.handle_unused()

    async def _dial_and_prepare(self) -> Link:
        async with give_up_after(self._clock, self._limits.connect_seconds):
            link = await self._dial(self._resumption)
        try:
            await self._owner.prepare_link(link)
        except BaseException:
            await self._close_link(link)
            raise
        return link

    def _dial_failed(self, reason: str, **known: bool) -> None:
        """Report a failed attempt. `known` contains further fields of `DialFailed`."""
        self._handle(DialFailed(reason=reason, at=self._clock.now(), spread=self._spread(), **known))

    def _check_end(self, link: Link) -> None:
        """Report the end of the link if it has ended and its end was not yet reported."""
        if self.link is link and link.closed.done():
            self._handle(LinkEnded(end=link.closed.result(), at=self._clock.now(), spread=self._spread()))

    def _detach_link(self, end: LinkEnd) -> None:
        link, self.link = self.link, None
        if self.idle_timer is not None:
            self.idle_timer.cancel()
            self.idle_timer = None
        if link is not None:
            self._begin(self._release_link(link, end), "close")
            link.end(end)

    async def _release_link(self, link: Link, end: LinkEnd) -> None:
        await self._close_link(link)
        if end.kind is not LinkEndKind.LOST:
            self._events.announce_stop(self._last_process, end)
        self._handle(Released(self._clock.now()))

    async def _close_link(self, link: Link) -> None:
        self._owner.detach_link()
        self._resumption = link.resumption
        try:
            await close_bounded(link.close(), within=CLOSE_LINK_SECONDS, what=f"the link to {self._spec.name}")
        finally:
            self._last_process = link.process()

    def _is_permanent(self, error: Exception) -> bool:
        """Return whether a retry is pointless. For example, a missing program will still be missing a second later."""
        is_unreachable = isinstance(error, LinkError) and error.failure is LinkFailure.UNREACHABLE
        return is_unreachable and isinstance(self._spec.target, StdioTarget)

    def _words(self, error: Exception) -> str:
        hint = mode_hint(self._spec.mode, error)
        if not isinstance(error, TimeoutError):
            return f"{error}{hint}"
        stderr = self._owner.stderr_of_dial()
        words = f"it did not answer within {self._limits.connect_seconds:g} s{hint}"
        return f"{words}; {stderr}" if stderr else words


def _first_state(spec: BackendSpec, limits: Limits) -> ConnectionState:
    policy = _policy(spec, limits)
    if isinstance(spec.target, UnusableTarget):
        return Down(history=ConnectionHistory(retries=RetryCount(policy)), reason=spec.target.reason)
    return first_state(policy)


def _policy(spec: BackendSpec, limits: Limits) -> RetryPolicy:
    if isinstance(spec.target, StdioTarget):
        return spec.target.restart.policy(stable_after=limits.stable_seconds)
    return RetryPolicy(
        base=limits.http_retry_seconds,
        longest=limits.longest_http_retry_seconds,
        stable_after=limits.stable_seconds,
    )
