"""The state machine of a login: a pure function from state and event to the next state and its effects.

    state                    event                   → state                     effects
    ──────────────────────────────────────────────────────────────────────────────────────────────────────
    begin                                            FindingResource             Send
    FindingResource          Answered                FindingServer               Send
    FindingServer            Answered                Registering                 Send
    Registering              Answered                AwaitingBrowser             KeepRegistration, AskPerson
    AwaitingBrowser          BrowserReturned         AskingForToken              Send
    AskingForToken           Answered                Granted

    other grants             FindingServer → AskingForToken, or → ExchangingIdentity → AskingForToken,
                             or → AskingForDeviceCode → AwaitingDevice, which polls on a timer until it is done

Every state can lead to Failed. If a metadata document is missing, the login tries the next address.
"""

from dataclasses import replace
from typing import assert_never

from emceepee.backends.oauth.asking import (
    exchange_identity,
    poll,
    show,
    show_code,
    take_poll,
    take_return,
    take_token,
    unreachable,
)
from emceepee.backends.oauth.device import SLOWER
from emceepee.backends.oauth.discovery import find_resource, find_server, next_server, register
from emceepee.backends.oauth.flow import (
    Abandoned,
    AskingForDeviceCode,
    AskingForToken,
    AwaitingBrowser,
    AwaitingDevice,
    BrowserReturned,
    ExchangeAnswered,
    ExchangeUnanswered,
    ExchangingIdentity,
    Failed,
    FindingResource,
    FindingServer,
    FlowEvent,
    FlowState,
    Granted,
    KeptState,
    LoginTimerFired,
    Registering,
    Send,
    StartLoginTimer,
    Step,
)
from emceepee.backends.oauth.metadata.well_known import origin_of


def step(state: FlowState, event: FlowEvent) -> Step:
    """Return the next state and its effects. An event that does not apply to the state changes nothing."""
    if isinstance(state, Granted | Failed):
        return state, ()
    match event:
        case Abandoned():
            return Failed(reason=event.reason), ()
        case ExchangeUnanswered():
            return _miss(state, event)
        case ExchangeAnswered():
            return _answer(state, event)
        case BrowserReturned() if isinstance(state, AwaitingBrowser):
            return take_return(state, event.url)
        case LoginTimerFired() if isinstance(state, AwaitingDevice):
            return poll(state, event.at)
    return state, ()


def resume(state: KeptState) -> Step:
    """Continue a login after a restart.

    A code that may already have been redeemed is tried once more, to avoid asking the person again without need.
    """
    match state:
        case AwaitingBrowser():
            return state, (show(state),)
        case AwaitingDevice():
            return replace(state, is_polling=False), (show(state), StartLoginTimer(state.device.interval))
        case AskingForToken():
            return state, (Send(state.request),)
        case _:
            assert_never(state)


def _answer(state: FlowState, event: ExchangeAnswered) -> Step:
    answer, now = event.answer, event.at
    match state:
        case FindingResource():
            return find_resource(state, answer)
        case FindingServer():
            return find_server(state, answer, now)
        case Registering():
            return register(state, answer)
        case AskingForDeviceCode():
            return show_code(state, answer, now)
        case AwaitingDevice(is_polling=True):
            return take_poll(state, answer, now)
        case ExchangingIdentity():
            return exchange_identity(state, answer)
        case AskingForToken():
            return take_token(state, answer, now)
    return state, ()


def _miss(state: FlowState, event: ExchangeUnanswered) -> Step:
    """Handle a missing answer: try the metadata's next address, poll again later for a device code, or else fail."""
    match state:
        case FindingServer():
            return next_server(state, f"{origin_of(state.asked)} did not answer: {event.reason}")
        case AwaitingDevice(is_polling=True):
            return replace(state, is_polling=False), (StartLoginTimer(state.device.interval + SLOWER),)
        case FindingResource():
            return unreachable(state.asked, event.reason)
        case Registering() | AskingForDeviceCode() | ExchangingIdentity() | AskingForToken():
            return unreachable(state.grantor.server.issuer, event.reason)
    return state, ()
