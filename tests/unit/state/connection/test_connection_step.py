"""Any connection events in any order: each waiter gets one outcome, and each link is closed once."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from emceepee.state.connection.connection_effects import (
    AbandonDial,
    AdmitWaiters,
    AnnounceEnd,
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
    ConnectionState,
    ConnectionStatus,
    Idle,
    LinkEnd,
    LinkEndKind,
    Opening,
    Pausing,
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
from emceepee.state.connection.retry import Retry, RetryPolicy
from support.figures import record_figure

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(seconds=100)
POLICY = RetryPolicy(base=1, longest=180, most=2, stable_after=60)
NEVER = RetryPolicy(base=1, longest=180, most=0, stable_after=60)
LOST = LinkEnd(LinkEndKind.LOST, "it fell")
FIRST_RETRY = AnnounceRetry(Retry(1, 1.0))

EVENTS: tuple[Event, ...] = (
    StartAsked(),
    Needed(),
    Needed(may_retry=False),
    ReconnectAsked(),
    RetireAsked(),
    RequestsFinished(),
    RestAsked(),
    CloseAsked(),
    Opened(NOW),
    DialFailed(reason="refused", at=NOW),
    DialFailed(reason="no such program", at=NOW, is_final=True),
    DialFailed(reason="a login", at=NOW, wants_login=True),
    LoginEnded(),
    LoginEnded("declined"),
    LinkEnded(end=LOST, at=NOW),
    LinkEnded(end=LOST, at=LATER),
    Released(NOW),
    Released(LATER),
    TimerFired(),
)


@dataclass(frozen=True)
class World:
    """The pending work of a supervisor; fails if an effect is impossible."""

    is_dialing: bool = False
    is_abandoned: bool = False  # the pending dial, which may still succeed or fail
    has_link: bool = False
    is_closing: bool = False
    has_timer: bool = False
    waiters: int = 0

    def can_happen(self, event: Event) -> bool:
        match event:
            case Opened() | DialFailed():
                return self.is_dialing
            case LinkEnded():
                return self.has_link
            case Released():
                return self.is_closing or self.is_abandoned
            case TimerFired():
                return self.has_timer
        return True

    def happened(self, event: Event) -> "World":
        match event:
            case Needed():
                return replace(self, waiters=self.waiters + 1)
            case Opened():
                return replace(self, is_dialing=False, is_abandoned=False, has_link=True)
            case DialFailed():
                return replace(self, is_dialing=False, is_abandoned=False)
            case Released():
                return replace(self, is_dialing=False, is_abandoned=False, is_closing=False)
            case TimerFired():
                return replace(self, has_timer=False)
        return self

    def does(self, effect: Effect) -> "World":
        match effect:
            case Dial():
                assert not any((self.is_dialing, self.has_link, self.is_closing)), "a second link"
                return replace(self, is_dialing=True)
            case AbandonDial():
                assert self.is_dialing
                assert not self.is_abandoned
                return replace(self, is_abandoned=True)
            case CloseLink():
                assert self.has_link, "closed twice, or never opened"
                return replace(self, has_link=False, is_closing=True)
            case StartTimer() | StartHolding():
                assert not self.has_timer, "two timers"
                return replace(self, has_timer=True)
            case StopTimer():
                assert self.has_timer
                return replace(self, has_timer=False)
            case AdmitWaiters():
                assert self.has_link, "admitted to nothing"
                return replace(self, waiters=0)
            case RejectWaiters():
                return replace(self, waiters=0)
        return self


def play(state: ConnectionState, world: World, *events: Event) -> tuple[ConnectionState, World]:
    """Apply the possible events in order, and check the invariants after each."""
    for event in events:
        if not world.can_happen(event):
            continue
        world = world.happened(event)
        state, effects = step(state, event)
        for effect in effects:
            world = world.does(effect)
        check(state, world)
    return state, world


def check(state: ConnectionState, world: World) -> None:
    assert world.has_link is isinstance(state, Up)
    assert (world.is_dialing and not world.is_abandoned) is isinstance(state, Opening)
    assert (world.is_closing or world.is_abandoned) is isinstance(state, Closing)
    assert world.has_timer is (isinstance(state, Pausing) or (isinstance(state, Up) and state.holds_waiters))
    can_wait = (
        isinstance(state, Opening)
        or (isinstance(state, Closing) and isinstance(state.then, Opening))
        or (isinstance(state, Up) and state.holds_waiters)
    )
    assert can_wait or not world.waiters, "someone waits for what nobody does"


@cache
def everywhere() -> dict[tuple[ConnectionState, World], None]:
    """Return every reachable state with all its possible pending work, and with no, one, or several waiters."""
    unexplored = [(first_state(policy), World()) for policy in (POLICY, NEVER)]
    found = dict.fromkeys(unexplored)
    while unexplored:
        state, world = unexplored.pop()
        for event in EVENTS:
            state_then, world_then = play(state, world, event)
            then = (state_then, replace(world_then, waiters=min(world_then.waiters, 2)))
            if then not in found:
                found[then] = None
                unexplored.append(then)
    return found


def test_every_kind_of_connection_state_is_covered() -> None:
    kinds = {type(state).__name__ for state, _ in everywhere()}
    assert kinds == {"Idle", "Opening", "Authorizing", "Up", "Pausing", "Closing", "Down", "Closed"}
    record_figure(f"{len(everywhere())} states with what is under way in them")


@pytest.mark.parametrize("first", EVENTS, ids=str)
def test_after_any_two_events_each_waiter_has_one_outcome_and_each_link_is_closed_once(first: Event) -> None:
    for state, world in everywhere():
        for second in EVENTS:
            after, left = play(state, world, first, second)
            closed, left = play(after, left, CloseAsked(), Released(NOW))
            assert isinstance(closed, Closed)
            assert left == World(), (state, world, first, second)


def test_every_move_in_the_connection_table_occurs_and_no_other() -> None:
    made: set[tuple[ConnectionStatus, ConnectionStatus]] = set()
    for state, world in everywhere():
        for event in EVENTS:
            target, _ = play(state, world, event)
            if target != state:
                made.add((state.view.status, target.view.status))
    steady = {(status, status) for status in ConnectionStatus}
    table = {(move.source, move.target) for move in CONNECTION.moves}
    assert made - steady == table - steady
    assert table & steady <= made


def test_an_event_that_cannot_happen_in_a_connection_state_changes_nothing() -> None:
    for state, world in everywhere():
        for event in EVENTS:
            is_race = isinstance(state, Closing) and isinstance(event, Opened | DialFailed)
            if not world.can_happen(event) and not is_race:
                assert step(state, event) == (state, ()), (state, event)


# One by one.


def test_a_server_that_requires_a_login_is_retried_only_after_the_login_ends() -> None:
    waiting = reach(Needed(), DialFailed(reason="a login", at=NOW, wants_login=True))
    assert isinstance(waiting, Authorizing)
    assert step(waiting, Needed()) == (waiting, (RejectWaiters(),))
    assert step(waiting, TimerFired()) == (waiting, ())
    logged_in, effects = step(waiting, LoginEnded())
    assert isinstance(logged_in, Opening)
    assert effects == (Dial(),)
    declined, _ = step(waiting, LoginEnded("declined"))
    assert (declined.view.status, declined.view.reason) == (ConnectionStatus.ERROR, "declined")


def reach(*events: Event) -> ConnectionState:
    state, world = first_state(POLICY), World()
    return play(state, world, *events)[0]


UP = (Needed(), Opened(NOW))


def test_the_loss_of_a_link_is_announced_before_its_calls_fail() -> None:
    state, effects = step(reach(*UP), LinkEnded(end=LOST, at=NOW))
    assert isinstance(state, Closing)
    assert effects == (AnnounceEnd(LOST), CloseLink(LOST))


@pytest.mark.parametrize(
    ("event", "end", "is_announced"),
    [(ReconnectAsked(), RECONNECTED, True), (RestAsked(), UNUSED, False), (CloseAsked(), CLOSED, True)],
    ids=str,
)
def test_a_deliberate_disconnect_has_its_own_kind_of_link_end(event: Event, end: LinkEnd, is_announced: bool) -> None:
    _, effects = step(reach(*UP), event)
    assert CloseLink(end) in effects
    assert (AnnounceEnd(end) in effects) is is_announced


def test_a_retiring_link_is_replaced_when_it_has_no_more_requests() -> None:
    retiring = reach(*UP, RetireAsked(), Needed())
    state, effects = step(retiring, RequestsFinished())
    assert isinstance(state, Closing)
    assert isinstance(state.then, Opening)
    assert effects == (StopTimer(), AnnounceEnd(OTHER_ERA), CloseLink(OTHER_ERA))


def test_a_retiring_link_that_stays_busy_admits_the_waiting_callers() -> None:
    retiring = reach(*UP, RetireAsked(), Needed())
    assert isinstance(retiring, Up)
    assert step(retiring, TimerFired()) == (replace(retiring, holds_waiters=False), (AdmitWaiters(),))


def test_a_link_that_opens_after_its_attempt_was_abandoned_is_closed() -> None:
    state = reach(Needed(), RestAsked())
    assert step(state, Opened(NOW)) == (state, (CloseLink(CLOSED),))


def test_the_retry_pause_is_counted_from_the_loss_and_not_from_the_end_of_the_old_link() -> None:
    closing = reach(*UP, LinkEnded(end=LOST, at=NOW))
    assert step(closing, Released(NOW + timedelta(seconds=0.4)))[1] == (FIRST_RETRY, StartTimer(0.6))
    assert step(closing, Released(NOW + timedelta(seconds=4)))[1] == (FIRST_RETRY, Dial())


def test_a_call_while_a_lost_link_is_closing_skips_the_retry_pause() -> None:
    closing = reach(*UP, LinkEnded(end=LOST, at=NOW), Needed())
    assert step(closing, Released(NOW))[1] == (FIRST_RETRY, Dial())


def test_only_a_connection_that_was_lost_is_announced_as_reconnected() -> None:
    assert step(reach(Needed()), Opened(NOW))[1][0] == AnnounceUp(None)
    again = reach(*UP, LinkEnded(end=LOST, at=NOW), Released(LATER), DialFailed(reason="refused", at=NOW), Needed())
    assert step(again, Opened(NOW))[1][0] == AnnounceUp(2)
    rested = reach(*UP, RestAsked(), Released(NOW), Needed())
    assert step(rested, Opened(NOW))[1][0] == AnnounceUp(None)


def test_a_first_connection_attempt_without_retries_fails_at_once() -> None:
    state, effects = step(reach(Needed(may_retry=False)), DialFailed(reason="refused", at=NOW))
    assert state.view.status is ConnectionStatus.ERROR
    assert effects[1:] == (AnnounceGivingUp("refused", 0), RejectWaiters())


def test_a_suspended_session_resets_its_failed_attempts_but_remembers_the_loss() -> None:
    state = reach(*UP, LinkEnded(end=LOST, at=NOW), Released(NOW), RestAsked())
    assert isinstance(state, Idle)
    assert (state.history.retries.attempts, state.history.was_lost) == (0, True)
