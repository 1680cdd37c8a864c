from enum import StrEnum

import pytest

from emceepee.state.machine import ForbiddenMove, Machine, Move


class Lamp(StrEnum):
    OFF = "off"
    ON = "on"
    BROKEN = "broken"


LAMP = Machine(
    "lamp_states",
    "A lamp",
    begins=(Lamp.OFF, "It is bought"),
    moves=[
        Move(Lamp.OFF, Lamp.ON, "The switch"),
        Move(Lamp.ON, Lamp.OFF, "The switch again"),
        Move(Lamp.ON, Lamp.BROKEN, "Too long"),
    ],
    ends="It is thrown away",
)


def test_a_state_diagram_shows_the_start_every_move_and_the_final_states() -> None:
    assert LAMP.mermaid() == (
        "stateDiagram-v2\n"
        "    [*] --> off : It is bought\n"
        "    off --> on : The switch\n"
        "    on --> off : The switch again\n"
        "    on --> broken : Too long\n"
        "    broken --> [*] : It is thrown away"
    )


def test_a_state_machine_allows_exactly_the_moves_of_its_table() -> None:
    allowed = {(source, target) for source in Lamp for target in Lamp if LAMP.allows(source, target)}
    assert allowed == {(Lamp.OFF, Lamp.ON), (Lamp.ON, Lamp.OFF), (Lamp.ON, Lamp.BROKEN)}


def test_a_forbidden_move_names_the_machine_and_both_states() -> None:
    LAMP.check(Lamp.OFF, Lamp.ON)
    with pytest.raises(ForbiddenMove, match="lamp_states: broken does not lead to on"):
        LAMP.check(Lamp.BROKEN, Lamp.ON)


def test_a_state_without_outgoing_moves_is_final() -> None:
    assert [state for state in Lamp if LAMP.is_final(state)] == [Lamp.BROKEN]
