"""The life of a connection: every ordered pair of states, and what a record says in each."""

from datetime import UTC, datetime
from itertools import product

import pytest

from emceepee.state.connection import CONNECTION, ConnectionState, ConnectionStatus
from emceepee.state.machine import ForbiddenMove

NOW = datetime(2026, 1, 1, tzinfo=UTC)
S = ConnectionStatus
ALLOWED = {
    S.NOT_CONNECTED: {S.CONNECTING},
    S.CONNECTING: {S.CONNECTED, S.RECONNECTING, S.ERROR, S.DISCONNECTED},
    S.CONNECTED: {S.RECONNECTING, S.DISCONNECTED, S.NOT_CONNECTED, S.ERROR},
    S.RECONNECTING: {S.RECONNECTING, S.CONNECTED, S.ERROR, S.DISCONNECTED},
    S.DISCONNECTED: {S.CONNECTING, S.NOT_CONNECTED},
    S.ERROR: {S.CONNECTING},
}


def moved(state: ConnectionState, target: ConnectionStatus) -> ConnectionState:
    match target:
        case S.NOT_CONNECTED:
            return state.resting()
        case S.CONNECTING:
            return state.connecting()
        case S.CONNECTED:
            return state.connected(NOW)
        case S.RECONNECTING:
            return state.reconnecting("it fell", attempt=2, retry_at=NOW)
        case S.DISCONNECTED:
            return state.disconnected("it was closed")
        case S.ERROR:
            return state.failed("it crashed")


@pytest.mark.parametrize(("source", "target"), list(product(S, S)), ids=str)
def test_a_connection_moves_only_where_its_table_leads(source: ConnectionStatus, target: ConnectionStatus) -> None:
    state = ConnectionState(status=source)
    assert CONNECTION.allows(source, target) is (target in ALLOWED[source])
    if target in ALLOWED[source]:
        assert moved(state, target).status is target
    else:
        with pytest.raises(ForbiddenMove, match=f"{source} does not lead to {target}"):
            moved(state, target)
        assert state.status is source


def test_it_begins_not_connected_and_no_state_is_final() -> None:
    assert ConnectionState().status is CONNECTION.initial is S.NOT_CONNECTED
    assert not any(CONNECTION.is_final(status) for status in S)


def test_each_state_says_only_what_holds_in_it() -> None:
    waiting = ConnectionState().connecting().reconnecting("it fell", attempt=2, retry_at=NOW)
    assert (waiting.reason, waiting.attempt, waiting.retry_at) == ("it fell", 2, NOW)
    up = waiting.connected(NOW)
    assert up == ConnectionState(status=S.CONNECTED, connected_at=NOW)
    down = up.disconnected("it was closed")
    assert down == ConnectionState(status=S.DISCONNECTED, reason="it was closed")
    assert up.resting() == ConnectionState()
    assert up.failed("it crashed") == ConnectionState(status=S.ERROR, reason="it crashed")


def test_the_diagram_shows_every_move() -> None:
    drawn = CONNECTION.mermaid()
    for source, targets in ALLOWED.items():
        for target in targets:
            assert f"    {source} --> {target} : " in drawn
