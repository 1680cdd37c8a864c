"""The life of a connection: every ordered pair of statuses, and the view of each state."""

from datetime import UTC, datetime
from itertools import product

import pytest

from emceepee.state.connection.connection_state import (
    CONNECTION,
    Authorizing,
    Closed,
    Closing,
    ConnectionHistory,
    ConnectionState,
    ConnectionStatus,
    ConnectionView,
    Down,
    Idle,
    Opening,
    Pausing,
    Up,
)
from emceepee.state.connection.retry import Retry, RetryCount, RetryPolicy
from emceepee.state.machine import ForbiddenMove

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAST = ConnectionHistory(retries=RetryCount(RetryPolicy(base=1, longest=180, stable_after=60)))
FELL = Pausing(history=PAST, reason="it fell", retry=Retry(2, 3.1), retry_at=NOW)
S = ConnectionStatus
ALLOWED = {
    S.NOT_CONNECTED: {S.CONNECTING, S.DISCONNECTED},
    S.CONNECTING: {S.CONNECTED, S.RECONNECTING, S.ERROR, S.DISCONNECTED, S.NOT_CONNECTED, S.AUTHORIZING},
    S.CONNECTED: {S.RECONNECTING, S.DISCONNECTED, S.NOT_CONNECTED, S.ERROR, S.CONNECTING},
    S.RECONNECTING: {
        *(S.RECONNECTING, S.CONNECTED, S.ERROR, S.DISCONNECTED, S.NOT_CONNECTED, S.CONNECTING, S.AUTHORIZING),
    },
    S.AUTHORIZING: {S.CONNECTING, S.ERROR, S.NOT_CONNECTED, S.DISCONNECTED},
    S.DISCONNECTED: {S.CONNECTING},
    S.ERROR: {S.CONNECTING, S.DISCONNECTED},
}


@pytest.mark.parametrize(("source", "target"), list(product(S, S)), ids=str)
def test_a_connection_makes_only_the_moves_in_its_table(source: ConnectionStatus, target: ConnectionStatus) -> None:
    if target in ALLOWED[source]:
        CONNECTION.check(source, target)
    else:
        with pytest.raises(ForbiddenMove, match=f"{source} does not lead to {target}"):
            CONNECTION.check(source, target)


def test_no_connection_status_is_final() -> None:
    assert CONNECTION.initial is S.NOT_CONNECTED
    assert not any(CONNECTION.is_final(status) for status in S)


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (Idle(history=PAST), ConnectionView(status=S.NOT_CONNECTED)),
        (Opening(history=PAST), ConnectionView(status=S.CONNECTING)),
        (Authorizing(history=PAST, reason="a login"), ConnectionView(status=S.AUTHORIZING, reason="a login")),
        (Up(history=PAST, connected_at=NOW), ConnectionView(status=S.CONNECTED, connected_at=NOW)),
        (FELL, ConnectionView(status=S.RECONNECTING, reason="it fell", attempt=2, retry_at=NOW)),
        (Opening(history=PAST, after=FELL), FELL.view),
        (Down(history=PAST, reason="it crashed"), ConnectionView(status=S.ERROR, reason="it crashed")),
        (
            Down(history=PAST, reason="it crashed", is_error=False),
            ConnectionView(status=S.DISCONNECTED, reason="it crashed"),
        ),
        (Closing(FELL), FELL.view),
        (Closed("it was closed"), ConnectionView(status=S.DISCONNECTED, reason="it was closed")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_connection_state_shows_only_its_own_details(state: ConnectionState, shown: ConnectionView) -> None:
    assert state.view == shown


def test_the_connection_diagram_shows_every_move() -> None:
    drawn = CONNECTION.mermaid()
    for source, targets in ALLOWED.items():
        for target in targets:
            assert f"    {source} --> {target} : " in drawn
