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

from emceepee.backends.oauth.authorization import SLOW_DOWN_SECONDS
from emceepee.backends.oauth.discovery import (
    handle_registration,
    handle_resource_metadata,
    handle_server_metadata,
    try_next_server,
)
from emceepee.backends.oauth.flow import (
    AskingForDeviceCode,
    AskingForToken,
    AwaitingBrowser,
    AwaitingDevice,
    BrowserReturned,
    ExchangeAnswered,
    ExchangeUnanswered,
    ExchangingIdentity,
    FindingResource,
    FindingServer,
    FlowEvent,
    FlowFailed,
    FlowGranted,
    FlowState,
    KeptState,
    LoginAbandoned,
    LoginTimerFired,
    Registering,
    SendRequest,
    StartLoginTimer,
    Step,
)
from emceepee.backends.oauth.metadata.well_known import origin_of
from emceepee.backends.oauth.token_request import (
    handle_device_code,
    handle_identity,
    handle_poll,
    handle_redirect,
    handle_token,
    person_prompt,
    poll,
    unreachable,
)


def step(state: FlowState, event: FlowEvent) -> Step:
    """Return the next state and its effects. An event that does not apply to the state changes nothing."""
    if isinstance(state, FlowGranted | FlowFailed):
        return state, ()
    match event:
        case LoginAbandoned():
            return FlowFailed(reason=event.reason), ()
        case ExchangeUnanswered():
            return _handle_no_answer(state, event)
        case ExchangeAnswered():
            return _handle_answer(state, event)
        case BrowserReturned() if isinstance(state, AwaitingBrowser):
            return handle_redirect(state, event.url)
        case LoginTimerFired() if isinstance(state, AwaitingDevice):
            return poll(state, event.at)
    return state, ()


def resume(state: KeptState) -> Step:
    """Continue a login after a restart.

    A code that may already have been redeemed is tried once more, to avoid asking the person again without need.
    """
    match state:
        case AwaitingBrowser():
            return state, (person_prompt(state),)
        case AwaitingDevice():
            return replace(state, is_polling=False), (person_prompt(state), StartLoginTimer(state.device.interval))
        case AskingForToken():
            return state, (SendRequest(state.request),)
        case _:
            assert_never(state)


def _handle_answer(state: FlowState, event: ExchangeAnswered) -> Step:
    answer, now = event.answer, event.at
    match state:
        case FindingResource():
            return handle_resource_metadata(state, answer)
        case FindingServer():
            return handle_server_metadata(state, answer, now)
        case Registering():
            return handle_registration(state, answer)
        case AskingForDeviceCode():
            return handle_device_code(state, answer, now)
        case AwaitingDevice(is_polling=True):
            return handle_poll(state, answer, now)
        case ExchangingIdentity():
            return handle_identity(state, answer)
        case AskingForToken():
            return handle_token(state, answer, now)
    return state, ()


def _handle_no_answer(state: FlowState, event: ExchangeUnanswered) -> Step:
    """Handle a missing answer: try the metadata's next address, poll again later for a device code, or else fail."""
    match state:
        case FindingServer():
            return try_next_server(state, f"{origin_of(state.asked)} did not answer: {event.reason}")
        case AwaitingDevice(is_polling=True):
            return replace(state, is_polling=False), (StartLoginTimer(state.device.interval + SLOW_DOWN_SECONDS),)
        case FindingResource():
            return unreachable(state.asked, event.reason)
        case Registering() | AskingForDeviceCode() | ExchangingIdentity() | AskingForToken():
            return unreachable(state.grantor.server.issuer, event.reason)
    return state, ()
