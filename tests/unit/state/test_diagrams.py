"""Every diagram is generated from the table that the code enforces."""

from enum import StrEnum
from typing import Any

import pytest

from emceepee.state.call_step import CALL, CallStage
from emceepee.state.connection.connection_state import CONNECTION
from emceepee.state.diagrams import diagrams
from emceepee.state.machine import Machine
from emceepee.state.question import ELICITATION, SAMPLING
from emceepee.state.task import TASK
from emceepee.state.timer import TIMER

MACHINES: list[Machine[Any]] = [TASK, ELICITATION, SAMPLING, CALL, CONNECTION, TIMER]
DRAWN = {str(drawn["name"]): drawn for drawn in diagrams()}


def test_each_state_machine_has_a_diagram_and_so_do_the_entity_relationships() -> None:
    assert list(DRAWN) == [*(machine.name for machine in MACHINES), "entity_relationships"]
    assert all(set(drawn) == {"name", "description", "mermaid"} and drawn["description"] for drawn in DRAWN.values())


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_a_diagram_shows_every_state_and_exactly_the_moves_of_its_table(machine: Machine[StrEnum]) -> None:
    first, *lines = DRAWN[machine.name]["mermaid"].splitlines()
    arrows = [line.strip().split(" : ")[0].split(" --> ") for line in lines]
    states = type(machine.initial)
    moves = {(source, target) for source in states for target in states if machine.allows(source, target)}
    assert first == "stateDiagram-v2"
    assert {(a, b) for a, b in arrows if "[*]" not in (a, b)} == moves
    assert [b for a, b in arrows if a == "[*]"] == [machine.initial]
    assert {a for a, b in arrows if b == "[*]"} == {state for state in states if machine.is_final(state)}
    assert {name for arrow in arrows for name in arrow} - {"[*]"} == set(states)


def test_a_waiting_or_promoted_call_ends_finished_or_cancelled() -> None:
    ends = {CallStage.FINISHED, CallStage.CANCELLED}
    assert {stage for stage in CallStage if CALL.allows(CallStage.WAITING, stage)} == ends | {CallStage.PROMOTED}
    assert {stage for stage in CallStage if CALL.allows(CallStage.PROMOTED, stage)} == ends | {CallStage.LEFT}
    assert {stage for stage in CallStage if CALL.is_final(stage)} == ends | {CallStage.LEFT}


def test_the_entity_diagram_shows_the_caller_the_servers_and_everything_between_them() -> None:
    first, *lines = DRAWN["entity_relationships"]["mermaid"].splitlines()
    names = {end for line in lines for end in (line.split()[0], line.split()[-1])}
    assert first == "flowchart TB"
    assert names == {"Caller", "Calls", "Tasks", "Servers", "Elicitations", "Sampling", "Events", "Logs", "Timers"}
