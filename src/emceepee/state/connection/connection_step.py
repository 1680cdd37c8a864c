"""The state machine of a connection: one pure function from an event to the next state and its effects.

    event                    state before → after                    effects
    ───────────────────────────────────────────────────────────────────────────────────────────────────────────
    Needed                   Idle → Opening                          Dial
    Opened                   Opening → Up                            AnnounceUp, AdmitWaiters
    LinkEnded(lost)          Up → Closing(then=Pausing)              AnnounceEnd, CloseLink
    Released                 Closing → Pausing                       AnnounceRetry, StartTimer
    TimerFired, or Needed    Pausing → Opening                       Dial
    DialFailed               Opening → Pausing                       AnnounceFailure, AnnounceRetry, RejectWaiters, …
    DialFailed(wants_login)  Opening → Authorizing                   RejectWaiters
    LoginEnded               Authorizing, or Down → Opening          Dial
    ReconnectAsked           Up → Closing(then=Opening)              AnnounceEnd, CloseLink
    CloseAsked               anything → Closing(then=Closed)         AnnounceEnd, CloseLink, RejectWaiters

At any time there is at most one link or one attempt to open one. Both end in `Closing`, and nothing else begins before
they are `Released`. Each waiter is admitted or rejected once. Waiters exist only while a link is being opened, while it
is closed for reopening, and while a retiring link holds them back.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

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
    CLOSED,
    CONNECTION,
    OTHER_ERA,
    RECONNECTED,
    UNUSED,
    Authorizing,
    Closed,
    Closing,
    ConnectionHistory,
    ConnectionState,
    Down,
    Idle,
    LinkEnd,
    Opening,
    Pausing,
    Up,
)
from emceepee.state.connection.retry import GiveUp, Retry, RetryCount, RetryPolicy


@dataclass(frozen=True, slots=True)
class StartAsked:
    """The link may be needed soon; nobody waits for it."""


@dataclass(frozen=True, slots=True)
class Needed:
    """A caller waits for a link. If `may_retry` is False, a first attempt is the only one."""

    may_retry: bool = True


@dataclass(frozen=True, slots=True)
class ReconnectAsked:
    """A new link is requested, in any state."""


@dataclass(frozen=True, slots=True)
class RetireAsked:
    """The link works, but a better one is available: replace it when it has no requests in flight."""


@dataclass(frozen=True, slots=True)
class RequestsFinished:
    """No request is in flight on the link."""


@dataclass(frozen=True, slots=True)
class RestAsked:
    """The link is not needed for now, for the reason in `end`."""

    end: LinkEnd = UNUSED


@dataclass(frozen=True, slots=True)
class CloseAsked:
    """The connection is no longer needed."""


@dataclass(frozen=True, slots=True)
class Opened:
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DialFailed:
    """An attempt failed. If `is_final`, a retry is useless. `spread` from -1 to 1 varies the next pause.

    `wants_login`: a retry is useless until a person logs in; the login has been requested. `tries_on_use`: the next
    call may succeed.
    """

    reason: str
    at: datetime
    spread: float = 0.0
    is_final: bool = False
    wants_login: bool = False
    tries_on_use: bool = False


@dataclass(frozen=True, slots=True)
class LoginEnded:
    """A login ended; `reason` describes its failure, None means success."""

    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkEnded:
    """The link ended unexpectedly: the backend or the network connection was lost."""

    end: LinkEnd
    at: datetime
    spread: float = 0.0


@dataclass(frozen=True, slots=True)
class Released:
    """The last link, or the attempt to open one, is completely closed."""

    at: datetime


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The pause before the next attempt, or the time limit for holding waiters back, is over."""


Event = (
    StartAsked
    | Needed
    | ReconnectAsked
    | RetireAsked
    | RequestsFinished
    | RestAsked
    | CloseAsked
    | Opened
    | DialFailed
    | LoginEnded
    | LinkEnded
    | Released
    | TimerFired
)

Effects = tuple[Effect, ...]
Step = tuple[ConnectionState, Effects]


def first_state(policy: RetryPolicy) -> ConnectionState:
    return Idle(history=ConnectionHistory(retries=RetryCount(policy)))


def step(state: ConnectionState, event: Event) -> Step:
    """Return the next state and the effects. An event without meaning in a state changes nothing.

    Raises:
        ForbiddenMove: never; it would be a defect of this module.
    """
    target, effects = _react(state, event)
    if target.view.status is not state.view.status:
        CONNECTION.check(state.view.status, target.view.status)
    return target, effects


def _react(state: ConnectionState, event: Event) -> Step:
    match event:
        case StartAsked():
            return _start(state)
        case Needed():
            return _need(state, event)
        case ReconnectAsked():
            return _reopen(state, RECONNECTED)
        case RetireAsked() if isinstance(state, Up):
            return replace(state, is_retiring=True), ()
        case RequestsFinished() if isinstance(state, Up) and state.is_retiring:
            return _reopen(state, OTHER_ERA)
        case RestAsked():
            return _rest(state, event.end)
        case CloseAsked():
            return _close(state)
        case Opened() if isinstance(state, Opening):
            return _come_up(state, event)
        case DialFailed() if isinstance(state, Opening):
            return _fail(state, event)
        case LoginEnded() if isinstance(state, Authorizing):
            return _end_login(state, event)
        case LoginEnded(reason=None) if isinstance(state, Down) and state.is_error:  # an earlier login had failed
            return Opening(history=state.history.fresh()), (Dial(),)
        case LinkEnded() if isinstance(state, Up):
            return _lose(state, event)
        case Opened() if isinstance(state, Closing):  # it opened while it was being abandoned
            return state, (CloseLink(CLOSED),)
        case Released() | DialFailed() if isinstance(state, Closing):
            return _enter(state.then, event.at)
        case TimerFired():
            return _expire(state)
    return state, ()


def _start(state: ConnectionState) -> Step:
    match state:
        case Idle():
            return Opening(history=state.history), (Dial(),)
        case Closing(then=Idle() as idle):
            return Closing(Opening(history=idle.history)), ()
    return state, ()


def _need(state: ConnectionState, event: Needed) -> Step:
    match state:
        case Idle():
            return Opening(history=state.history, may_retry=event.may_retry), (Dial(),)
        case Down(tries_on_use=True):
            return Opening(history=state.history.fresh(), may_retry=event.may_retry), (Dial(),)
        case Pausing():
            return _retry(state), (StopTimer(), Dial())
        case Up(is_retiring=False):
            return state, (AdmitWaiters(),)
        case Up(holds_waiters=False):
            return replace(state, holds_waiters=True), (StartHolding(),)
        case Closing(then=Idle() as idle):
            return Closing(Opening(history=idle.history, may_retry=event.may_retry)), ()
        case Closing(then=Pausing() as pausing):
            return Closing(_retry(pausing)), ()
        case Opening() | Up() | Closing(then=Opening()):
            return state, ()
        case Authorizing() | Down() | Closed() | Closing():
            return state, (RejectWaiters(),)
        case _:
            assert_never(state)


def _reopen(state: ConnectionState, end: LinkEnd) -> Step:
    match state:
        case Idle() | Authorizing() | Down():
            return Opening(history=state.history.fresh()), (Dial(),)
        case Pausing():
            return Opening(history=state.history.fresh()), (StopTimer(), Dial())
        case Opening():
            return Closing(Opening(history=state.history.fresh())), (AbandonDial(),)
        case Up():
            lost = replace(state.history, was_lost=True).fresh()
            return Closing(Opening(history=lost)), (*_stop_holding(state), AnnounceEnd(end), CloseLink(end))
        case Closing(then=Idle() | Pausing() | Opening() | Down() as then):
            return Closing(Opening(history=then.history.fresh())), ()
        case Closing() | Closed():
            return state, ()
        case _:
            assert_never(state)


def _rest(state: ConnectionState, end: LinkEnd) -> Step:
    match state:
        case Authorizing():
            return Idle(history=state.history.fresh()), ()
        case Pausing():
            return Idle(history=state.history.fresh()), (StopTimer(),)
        case Opening():
            return Closing(Idle(history=state.history.fresh())), (AbandonDial(), RejectWaiters())
        case Up():
            effects = (*_stop_holding(state), CloseLink(end), RejectWaiters())
            return Closing(Idle(history=state.history.fresh())), effects
        case Closing(then=Pausing() | Opening() as then):
            return Closing(Idle(history=then.history.fresh())), (RejectWaiters(),)
    return state, ()


def _close(state: ConnectionState) -> Step:
    closed = Closed(CLOSED.reason)
    match state:
        case Idle() | Authorizing():
            return closed, ()
        case Down():
            return Closed(state.reason), ()
        case Pausing():
            return closed, (StopTimer(),)
        case Opening():
            return Closing(closed), (AbandonDial(), RejectWaiters())
        case Up():
            effects = (*_stop_holding(state), AnnounceEnd(CLOSED), CloseLink(CLOSED), RejectWaiters())
            return Closing(closed), effects
        case Closing(then=Down() as down):
            return Closing(Closed(down.reason)), ()
        case Closing(then=Closed()) | Closed():
            return state, ()
        case Closing():
            return Closing(closed), (RejectWaiters(),)
        case _:
            assert_never(state)


def _come_up(state: Opening, event: Opened) -> Step:
    history = state.history
    tries = max(history.tries, 1) if history.was_lost else None
    up = Up(history=ConnectionHistory(retries=history.retries), connected_at=event.at)
    return up, (AnnounceUp(tries), AdmitWaiters())


def _fail(state: Opening, event: DialFailed) -> Step:
    history = state.history
    if event.wants_login:
        return Authorizing(history=history, reason=event.reason), (RejectWaiters(),)
    failure = AnnounceFailure(event.reason, history.tries)
    decision = history.retries.next(event.spread)
    if event.is_final or not state.may_retry or isinstance(decision, GiveUp):
        giving_up = AnnounceGivingUp(event.reason, history.retries.attempts)
        down = Down(history=history, reason=event.reason, tries_on_use=event.tries_on_use)
        return down, (failure, giving_up, RejectWaiters())
    tried = replace(history, retries=history.retries.tried(), tries=history.tries + 1)
    pausing = _pause(tried, event.reason, decision, event.at)
    return pausing, (failure, AnnounceRetry(decision), RejectWaiters(), StartTimer(decision.delay))


def _end_login(state: Authorizing, event: LoginEnded) -> Step:
    if event.reason is None:
        return Opening(history=state.history.fresh()), (Dial(),)
    down = Down(history=state.history, reason=event.reason)
    return down, (AnnounceFailure(event.reason, state.history.tries), AnnounceGivingUp(event.reason, 0))


def _lose(state: Up, event: LinkEnded) -> Step:
    up_for = (event.at - state.connected_at).total_seconds()
    history = ConnectionHistory(retries=state.history.retries.after_loss(up_for), tries=1, was_lost=True)
    effects: Effects = (*_stop_holding(state), AnnounceEnd(event.end), CloseLink(event.end))
    decision = history.retries.next(event.spread)
    if isinstance(decision, GiveUp):
        down = Down(history=history, reason=event.end.reason, is_error=history.retries.attempts > 0)
        return Closing(down), (*effects, RejectWaiters())
    tried = replace(history, retries=history.retries.tried())
    pausing = _pause(tried, event.end.reason, decision, event.at)
    then = _retry(pausing) if state.holds_waiters else pausing
    return Closing(then), effects


def _enter(then: "Idle | Pausing | Opening | Down | Closed", at: datetime) -> Step:
    match then:
        case Opening(after=Pausing() as pausing):
            return then, (AnnounceRetry(pausing.retry), Dial())
        case Opening():
            return then, (Dial(),)
        case Pausing() if (left := (then.retry_at - at).total_seconds()) > 0:
            return then, (AnnounceRetry(then.retry), StartTimer(left))
        case Pausing():
            return _retry(then), (AnnounceRetry(then.retry), Dial())
        case Down():
            return then, (AnnounceGivingUp(then.reason, then.history.retries.attempts),)
        case Idle() | Closed():
            return then, ()
        case _:
            assert_never(then)


def _expire(state: ConnectionState) -> Step:
    match state:
        case Pausing():
            return _retry(state), (Dial(),)
        case Up(holds_waiters=True):  # the requests in flight take too long: a retiring link is better than none
            return replace(state, holds_waiters=False), (AdmitWaiters(),)
    return state, ()


def _pause(history: ConnectionHistory, reason: str, retry: Retry, now: datetime) -> Pausing:
    retry_at = now + timedelta(seconds=retry.delay)
    return Pausing(history=history, reason=reason, retry=retry, retry_at=retry_at)


def _retry(pausing: Pausing) -> Opening:
    return Opening(history=pausing.history, after=pausing)


def _stop_holding(state: Up) -> Effects:
    return (StopTimer(),) if state.holds_waiters else ()
