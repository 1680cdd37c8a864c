"""The state machine of a login: a pure function from state and event to the next state and its effects.

    state                    event                   → state                     effects
    ──────────────────────────────────────────────────────────────────────────────────────────────────────
    begin                                            ResourceLookup              SendRequest
    ResourceLookup           ExchangeAnswered        ServerLookup                SendRequest
    ServerLookup             ExchangeAnswered        ClientRegistration          SendRequest
    ClientRegistration       ExchangeAnswered        BrowserLogin                KeepRegistration, AskPerson
    BrowserLogin             BrowserReturned         TokenRequest                SendRequest
    TokenRequest             ExchangeAnswered        FlowGranted

    other grants             ServerLookup → TokenRequest, or → IdentityExchange → TokenRequest,
                             or → DeviceCodeRequest → DeviceLogin, which polls on a timer until it is done

Every state can lead to FlowFailed. If a metadata document is missing, the login tries the next address.
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
    BrowserLogin,
    BrowserReturned,
    ClientRegistration,
    DeviceCodeRequest,
    DeviceLogin,
    ExchangeAnswered,
    ExchangeUnanswered,
    FlowEvent,
    FlowFailed,
    FlowGranted,
    FlowState,
    IdentityExchange,
    KeptState,
    LoginAbandoned,
    LoginTimerFired,
    ResourceLookup,
    SendRequest,
    ServerLookup,
    StartLoginTimer,
    Step,
    TokenRequest,
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
        case BrowserReturned() if isinstance(state, BrowserLogin):
            return handle_redirect(state, event.url)
        case LoginTimerFired() if isinstance(state, DeviceLogin):
            return poll(state, event.at)
    return state, ()


def resume(state: KeptState) -> Step:
    """Continue a login after a restart.

    A code that may already have been redeemed is tried once more, to avoid asking the person again without need.
    """
    match state:
        case BrowserLogin():
            return state, (person_prompt(state),)
        case DeviceLogin():
            return replace(state, is_polling=False), (person_prompt(state), StartLoginTimer(state.device.interval))
        case TokenRequest():
            return state, (SendRequest(state.request),)
        case _:
            assert_never(state)


def _handle_answer(state: FlowState, event: ExchangeAnswered) -> Step:
    answer, now = event.answer, event.at
    match state:
        case ResourceLookup():
            return handle_resource_metadata(state, answer)
        case ServerLookup():
            return handle_server_metadata(state, answer, now)
        case ClientRegistration():
            return handle_registration(state, answer)
        case DeviceCodeRequest():
            return handle_device_code(state, answer, now)
        case DeviceLogin(is_polling=True):
            return handle_poll(state, answer, now)
        case IdentityExchange():
            return handle_identity(state, answer)
        case TokenRequest():
            return handle_token(state, answer, now)
    return state, ()


def _handle_no_answer(state: FlowState, event: ExchangeUnanswered) -> Step:
    """Handle a missing answer: try the metadata's next address, poll again later for a device code, or else fail."""
    match state:
        case ServerLookup():
            return try_next_server(state, f"{origin_of(state.asked)} did not answer: {event.reason}")
        case DeviceLogin(is_polling=True):
            return replace(state, is_polling=False), (StartLoginTimer(state.device.interval + SLOW_DOWN_SECONDS),)
        case ResourceLookup():
            return unreachable(state.asked, event.reason)
        case ClientRegistration() | DeviceCodeRequest() | IdentityExchange() | TokenRequest():
            return unreachable(state.grantor.server.issuer, event.reason)
    return state, ()
