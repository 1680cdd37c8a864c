"""Keeps one connection open: one task that opens the link, watches it, tries again, and closes it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

from emceepee.backends.connection_events import ConnectionEvents, Observer
from emceepee.backends.link import Failure, Link, LinkError, RpcError
from emceepee.backends.negotiation import mode_hint
from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.clock import Clock, Handle, give_up_after, within
from emceepee.errors import BackendDisconnected, EmceepeeError
from emceepee.json_types import JsonObject
from emceepee.lifecycle import CLOSE_LINK_SECONDS, TaskOwner, close_bounded
from emceepee.state.connection import ConnectionState, ConnectionStatus
from emceepee.state.limits import Limits
from emceepee.state.retry import GiveUp, RetryCount, RetryPolicy
from emceepee.telemetry.logs import EventLog

log = EventLog("backends")

CLOSED = "the connection was closed"
ASKED_FOR = "reconnect_server was called"
ANOTHER_ERA = "it is connected anew in another protocol version"
RESTING = "nobody used it for a while; the next call starts it again"


class Owner(Protocol):
    """The connection, which makes a fresh link ready for use."""

    async def opened(self, link: Link) -> None: ...
    def lost(self) -> None: ...

    @property
    def is_listening(self) -> bool:
        """Whether someone wants to hear what the backend says unasked: then it is not stopped for being idle."""
        ...


class Supervisor:
    """`ready()` is a link or an error; `state` says how it stands meanwhile."""

    def __init__(
        self,
        spec: BackendSpec,
        dial: Callable[[object | None], Awaitable[Link]],
        observer: Observer,
        owner: Owner,
        *,
        tasks: TaskOwner,
        clock: Clock,
        limits: Limits,
        spread: Callable[[], float],
    ) -> None:
        self._state = ConnectionState()
        self.link: Link | None = None
        self._spec, self._dial, self._observer, self._owner = spec, dial, observer, owner
        self._tasks, self._clock, self._limits, self._spread = tasks, clock, limits, spread
        self._is_process = isinstance(spec.target, StdioTarget)
        self._events = ConnectionEvents(spec.name, observer, is_process=self._is_process)
        self._policy = _policy(spec, limits)
        self._runner: asyncio.Task[None] | None = None
        self._opening: asyncio.Future[Link] | None = None  # the outcome of the try that is on or comes next
        self._nudge: asyncio.Future[None] | None = None  # there while a pause before the next try may be cut short
        self._is_wanted = False  # whether someone waits for the next try
        self._invalidated: JsonObject | None = None  # by a loss after which it was not connected again so far
        self._is_up = False  # whether the link was announced and its end was not
        self._reopening: asyncio.Task[None] | None = None
        self._renewal: asyncio.Future[None] | None = None  # there while a link is to be replaced, and is still in use
        self._is_closed = False
        self._identity: str | None = None
        self._resumption: object | None = None
        self._last_process: JsonObject | None = None
        self._restarts = 0
        self._in_use = 0
        self._idle_since: Handle | None = None

    @property
    def state(self) -> ConnectionState:
        return self._state

    def _enter(self, state: ConnectionState) -> None:
        self._state = state
        self._observer.changed()

    @property
    def process(self) -> JsonObject | None:
        """The process behind the link, or the last one there was."""
        process = self.link.process() if self.link else self._last_process
        return None if process is None else process | {"restarts": self._restarts}

    # What the connection asks.

    def start(self, *, retrying: bool = True) -> None:
        if self.state.status is ConnectionStatus.NOT_CONNECTED and not self._is_closed:
            self._begin(retrying=retrying)

    @property
    def live(self) -> Link | None:
        """The link, if one can be used right now."""
        if self.link is None or self._renewal is not None or self.link.closed.done():
            return None
        return self.link

    async def ready(self, *, retrying: bool = True) -> Link:
        """Raises: BackendDisconnected."""
        if (link := self.live or await self._outlived()) is not None:
            return link
        self.start(retrying=retrying)
        is_running = self._reopening is not None or (self._runner is not None and not self._runner.done())
        if not is_running:
            raise self.unavailable()
        if self._opening is None:
            self._opening = asyncio.get_running_loop().create_future()
        self._is_wanted = True
        if self._nudge is not None and not self._nudge.done():
            self._nudge.set_result(None)
        return await asyncio.shield(self._opening)

    async def reconnect(self) -> Link:
        """Many at once cause one. Raises: BackendDisconnected."""
        if self._reopening is None and not self._is_closed:
            self._reopening = self._tasks.spawn(self._reopen(ASKED_FOR), name="reopen")
        if self._reopening is not None:
            await asyncio.shield(self._reopening)
        return await self.ready()

    def renew(self, link: Link) -> None:
        """Replace the link as soon as nothing is under way on it. Who comes meanwhile waits for the new one."""
        if self._renewal is None and self.link is link:
            self._renewal = asyncio.get_running_loop().create_future()
            self._renew_if_unused()

    def _renew_if_unused(self) -> None:
        if self._in_use == 0 and self._reopening is None and self.link is not None and not self._is_closed:
            self._reopening = self._tasks.spawn(self._reopen(ANOTHER_ERA), name="reopen")

    async def _outlived(self) -> Link | None:
        """The link that is to be replaced, if what is under way on it takes too long: better this one than none."""
        link, renewal = self.link, self._renewal
        if renewal is None or self._reopening is not None:
            return None
        with suppress(TimeoutError):
            await within(self._clock, self._limits.connect_seconds, renewal)
        return link if link is self.link and link is not None and not link.closed.done() else None

    def _end_renewal(self) -> None:
        renewal, self._renewal = self._renewal, None
        if renewal is not None and not renewal.done():
            renewal.set_result(None)

    async def rest(self) -> None:
        """Close the link, if there is one, until someone needs it again."""
        if self.link is not None:
            self.report_lost(self.link, RESTING)
            if self._runner is not None:
                await asyncio.wait({self._runner}, timeout=CLOSE_LINK_SECONDS * 2)
        elif self.state.status in (ConnectionStatus.CONNECTING, ConnectionStatus.RECONNECTING):
            await self._end()
            self._enter(self.state.resting())

    async def close(self) -> None:
        self._is_closed = True
        if self._reopening is not None:
            await asyncio.wait({self._reopening}, timeout=CLOSE_LINK_SECONDS * 2)
        await self._end()

    def report_lost(self, link: Link, reason: str) -> None:
        """A request found out before the link did."""
        if not link.closed.done():
            link.closed.set_result(reason)

    def used(self, change: int) -> None:
        """A request begins (+1) or ends (-1); after long disuse the link is closed until it is needed again."""
        self._in_use += change
        if self._idle_since is not None:
            self._idle_since.cancel()
            self._idle_since = None
        if self._renewal is not None:
            self._renew_if_unused()
        if self._in_use == 0 and self._limits.idle_stop_seconds and self.link is not None:
            self._idle_since = self._clock.call_later(self._limits.idle_stop_seconds, self._rest)

    def unavailable(self) -> EmceepeeError:
        """Why there is no link, and what to do."""
        name, state = self._spec.name, self.state
        reason = state.reason or (CLOSED if self._is_closed else "it was not connected yet")
        details: JsonObject = {"server": name, "status": str(state.status)}
        if state.status is ConnectionStatus.RECONNECTING:
            next_ms = self.next_retry_ms() or 0
            details |= {"reconnectAttempt": state.attempt, "nextRetryMs": next_ms}
            words = (
                f"is lost and being reconnected (attempt {state.attempt}, next in {next_ms} ms): {reason}. Call again,"
            )
        else:
            what = "could not be connected" if state.status is ConnectionStatus.ERROR else "is disconnected"
            words = f"{what}: {reason}. Try reconnect_server,"
        return BackendDisconnected(
            f'Server "{name}" {words} or remove it and add it with other settings.', details=details
        )

    def next_retry_ms(self) -> int | None:
        if self.state.retry_at is None:
            return None
        return max(round((self.state.retry_at - self._clock.now()).total_seconds() * 1000), 0)

    # The one task.

    def _begin(self, *, retrying: bool = True) -> None:
        self._enter(self.state.connecting())
        self._runner = self._tasks.spawn(self._run(retrying=retrying), name="supervisor")

    async def _reopen(self, reason: str) -> None:
        """A task of its own, so that a caller who leaves does not leave it half done."""
        try:
            if self.link is not None:
                # Before it closes: what waits on it is lost with it, and not withdrawn by the server.
                self.link, self._invalidated = None, self._events.cut_off(reason)
            await self._end()
            if not self._is_closed:
                self._begin()
        finally:
            self._reopening = None

    async def _end(self) -> None:
        """Whatever the one task is at: it stops, and its link is closed."""
        runner, self._runner = self._runner, None
        if runner is not None and not runner.done():
            self.link = None  # nobody is to begin anything on it
            runner.cancel()
            await asyncio.wait({runner}, timeout=CLOSE_LINK_SECONDS * 2)
        self._closed()

    async def _run(self, *, retrying: bool) -> None:
        count, failed_tries = RetryCount(self._policy), 0
        try:
            while True:
                self._is_wanted = False
                try:
                    link = await self._open()
                except (RpcError, LinkError, TimeoutError) as error:
                    reason = self._words(error)
                    self._observer.failed(reason, failed_tries)
                    is_hopeless = self._is_process and _cannot_start(error)
                    if is_hopeless or not retrying or not await self._pause(count, reason):
                        self._give_up(reason, count.attempts)
                        return
                    count, failed_tries = count.tried(), failed_tries + 1
                    continue
                began, retrying = self._clock.monotonic(), True
                reason = await self._serve(link, failed_tries)
                failed_tries = 0
                if reason == RESTING:
                    if not self._rested():
                        return
                    continue
                count = count.after_loss(self._clock.monotonic() - began)
                if not await self._pause(count, reason):
                    self._give_up(reason, count.attempts)
                    return
                count, failed_tries = count.tried(), 1
        except Exception as error:  # a defect of ours; but nobody is to wait for ever because of it
            log.error("supervisor_failed", server=self._spec.name, error=f"{type(error).__name__}: {error}")
            self._give_up(f"emceepee failed to keep it connected ({type(error).__name__}: {error})", 0)

    async def _open(self) -> Link:
        async with give_up_after(self._clock, self._limits.connect_seconds):
            return await self._dial(self._resumption)

    async def _serve(self, link: Link, failed_tries: int) -> str:
        """From a fresh link to its end, and why it ended."""
        try:
            await self._owner.opened(link)
            self._announce(link, failed_tries)
            link.closed.add_done_callback(lambda _: self._notice_end(link))
            reason = await asyncio.shield(link.closed)
            self._notice_end(link)
        finally:
            self.link = None
            self._end_renewal()
            if self._idle_since is not None:
                self._idle_since.cancel()
            self._owner.lost()
            self._resumption = link.resumption
            await close_bounded(link.close(), within=CLOSE_LINK_SECONDS, what=f"the link to {self._spec.name}")
            self._last_process = link.process()
        return reason

    def _notice_end(self, link: Link) -> None:
        """Before the calls on it fail: whoever hears of them has heard why, and they are counted."""
        if self.link is link:
            reason = link.closed.result()
            self.link, self._last_process, self._is_up = None, link.process(), False
            self._invalidated = None if reason == RESTING else self._events.lost(reason, self._last_process)

    def _announce(self, link: Link, failed_tries: int) -> None:
        is_same = link.identity is not None and link.identity == self._identity
        self._identity, self.link, self._is_up, self._is_wanted = link.identity, link, True, False
        self._enter(self.state.connected(self._clock.now()))
        process = link.process()
        invalidated, self._invalidated = self._invalidated, None
        if invalidated is None:
            self._events.connected(process, link.facts.capabilities)
        else:
            self._restarts += process is not None
            tries = max(failed_tries, 1)
            self._events.reconnected(process, tries=tries, is_same=is_same, invalidated=invalidated)
        opening, self._opening = self._opening, None
        if opening is not None and not opening.done():
            opening.set_result(link)
        self.used(0)

    async def _pause(self, count: RetryCount, reason: str) -> bool:
        """Wait until the next try is due, or someone needs the server now. False if there is to be none."""
        decision = count.next(self._spread())
        if isinstance(decision, GiveUp):
            return False
        was_connected = self.state.status is ConnectionStatus.CONNECTED
        retry_at = self._clock.now() + timedelta(seconds=decision.delay)
        self._enter(self.state.reconnecting(reason, attempt=decision.attempt, retry_at=retry_at))
        self._events.retrying(decision)
        if not was_connected:
            self._refuse()
        elif self._is_wanted:
            return True
        self._nudge = asyncio.get_running_loop().create_future()
        with suppress(TimeoutError):
            await within(self._clock, decision.delay, self._nudge)
        self._nudge = None
        return True

    def _give_up(self, reason: str, attempts: int) -> None:
        self._events.gave_up(reason, attempts)
        was_up_and_stays_down = self.state.status is ConnectionStatus.CONNECTED and not attempts
        self._enter(self.state.disconnected(reason) if was_up_and_stays_down else self.state.failed(reason))
        self._refuse()

    def _refuse(self) -> None:
        """Whoever waits for a link learns that there is none."""
        opening, self._opening = self._opening, None
        if opening is not None and not opening.done():
            opening.set_exception(self.unavailable())
            opening.exception()  # there may be nobody waiting

    def _rest(self) -> None:
        if self.link is None or self._in_use:
            return
        if self._owner.is_listening:
            self.used(0)  # not now; look again after the same time
        else:
            self.report_lost(self.link, RESTING)

    def _rested(self) -> bool:
        """True if someone came for it while it was being closed."""
        self._enter(self.state.resting())
        self._events.stopped(self._last_process)
        if self._is_wanted:
            self._enter(self.state.connecting())
            return True
        return False

    def _closed(self) -> None:
        """On purpose: whoever waits is told, unless it is opened anew, and the process is gone."""
        if self.state.status in (
            ConnectionStatus.CONNECTED,
            ConnectionStatus.CONNECTING,
            ConnectionStatus.RECONNECTING,
        ):
            self._enter(self.state.disconnected(CLOSED))
        if self._reopening is None or self._is_closed:
            self._refuse()
        if self._is_up:
            self._is_up = False
            self._observer.lost(CLOSED)
            self._events.stopped(self._last_process)

    def _words(self, error: Exception) -> str:
        words = str(error)
        if isinstance(error, TimeoutError):
            words = f"it did not answer within {self._limits.connect_seconds:g} s"
        return words + mode_hint(self._spec.mode, error)


def _policy(spec: BackendSpec, limits: Limits) -> RetryPolicy:
    if isinstance(spec.target, StdioTarget):
        return spec.target.restart.policy(stable_after=limits.stable_seconds)
    return RetryPolicy(
        base=limits.http_retry_seconds,
        longest=limits.longest_http_retry_seconds,
        stable_after=limits.stable_seconds,
    )


def _cannot_start(error: Exception) -> bool:
    """A program that is not there will not be there in a second either."""
    return isinstance(error, LinkError) and error.failure is Failure.UNREACHABLE
