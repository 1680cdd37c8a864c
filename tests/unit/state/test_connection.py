from collections.abc import Callable
from dataclasses import replace

import pytest

from emceepee.state.connection import CONNECTION, ConnectionState, ConnectionStatus
from emceepee.state.machine import ForbiddenMove
from support.fake_clock import START

S = ConnectionStatus
ALLOWED = {
    (S.NOT_CONNECTED, S.CONNECTING),
    (S.CONNECTING, S.CONNECTED),
    (S.CONNECTING, S.ERROR),
    (S.CONNECTED, S.DISCONNECTED),
    (S.CONNECTED, S.CONNECTING),
    (S.DISCONNECTED, S.CONNECTING),
    (S.ERROR, S.CONNECTING),
}
STEPS: dict[ConnectionStatus, Callable[[ConnectionState], ConnectionState]] = {
    S.CONNECTING: lambda state: state.connecting(),
    S.CONNECTED: lambda state: state.connected(START),
    S.ERROR: lambda state: state.failed("why"),
    S.DISCONNECTED: lambda state: state.lost("why"),
}
PAIRS = [(source, target) for source in S for target in STEPS]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_each_step_is_taken_exactly_where_the_table_leads(source: ConnectionStatus, target: ConnectionStatus) -> None:
    before = ConnectionState(status=source, connected_at=START if source is S.CONNECTED else None, reason="before")
    untouched = replace(before)
    if (source, target) in ALLOWED:
        assert STEPS[target](before).status is target
    else:
        with pytest.raises(ForbiddenMove):
            STEPS[target](before)
    assert before == untouched


def test_the_table_has_exactly_the_allowed_moves() -> None:
    assert {(source, target) for source in S for target in S if CONNECTION.allows(source, target)} == ALLOWED


def test_no_state_is_final_because_any_server_can_be_reconnected() -> None:
    assert not any(CONNECTION.is_final(status) for status in S)


def test_a_connected_state_knows_since_when_and_forgets_old_trouble() -> None:
    state = ConnectionState().connecting().failed("no route").connecting().connected(START)
    assert state == ConnectionState(status=S.CONNECTED, connected_at=START, reason=None)


def test_a_lost_state_says_why_and_is_no_longer_connected_since() -> None:
    state = ConnectionState().connecting().connected(START).lost("exited")
    assert state == ConnectionState(status=S.DISCONNECTED, connected_at=None, reason="exited")


def test_trouble_is_remembered_while_connecting_again() -> None:
    assert ConnectionState().connecting().failed("no route").connecting().reason == "no route"


def test_a_new_connection_is_not_connected() -> None:
    assert ConnectionState().status is CONNECTION.initial is S.NOT_CONNECTED
