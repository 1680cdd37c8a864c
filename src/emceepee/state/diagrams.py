"""Every state machine as a diagram, drawn from the table that guards the code."""

from enum import StrEnum

from emceepee.json_types import JsonObject
from emceepee.state.connection import CONNECTION
from emceepee.state.machine import Machine, Move
from emceepee.state.question import ELICITATION, SAMPLING
from emceepee.state.task import TASK
from emceepee.state.timer import TIMER


class CallStage(StrEnum):
    """A call, from the side of the one who waits for it."""

    IN_FLIGHT = "in_flight"
    """Sent; someone waits."""
    RETURNED = "returned_result"
    """The result went back directly."""
    FAILED = "returned_error"
    """The error went back directly."""
    CANCELLED = "cancelled"
    """The caller cancelled its request."""
    PROMOTED = "promoted_to_task"
    """It goes on as a task."""


_S = CallStage
CALL: Machine[CallStage] = Machine(
    "tool_call_lifecycle",
    "How a call returns directly or becomes a task",
    begins=(_S.IN_FLIGHT, "execute_tool, read_resource or get_prompt"),
    moves=[
        Move(_S.IN_FLIGHT, _S.RETURNED, "The result comes in time"),
        Move(_S.IN_FLIGHT, _S.FAILED, "An error comes in time"),
        Move(_S.IN_FLIGHT, _S.CANCELLED, "The caller cancels the request"),
        Move(_S.IN_FLIGHT, _S.PROMOTED, "timeout_ms passes, or the server asks something"),
    ],
    ends="The caller has its reply",
)

# Who meets whom: (from, what passes, to).
_RELATIONS = (
    ("Caller", "execute_tool", "Calls"),
    ("Calls", "becomes after timeout_ms or a question", "Tasks"),
    ("Caller", "get_task_result, cancel_task", "Tasks"),
    ("Servers", "elicitation/create or input_required", "Elicitations"),
    ("Servers", "sampling/createMessage or input_required", "Sampling"),
    ("Caller", "respond_to_elicitation", "Elicitations"),
    ("Caller", "respond_to_sampling", "Sampling"),
    ("Servers", "notifications", "Events"),
    ("Tasks", "created, completed, failed, cancelled, expired", "Events"),
    ("Elicitations", "asked, expired", "Events"),
    ("Sampling", "asked, expired", "Events"),
    ("Timers", "fired", "Events"),
    ("Servers", "log messages, stderr", "Logs"),
    ("Caller", "set_timer", "Timers"),
    ("Events", "every reply, await_activity", "Caller"),
    ("Logs", "get_logs", "Caller"),
)


def diagrams() -> list[JsonObject]:
    machines = (TASK, ELICITATION, SAMPLING, CALL, CONNECTION, TIMER)
    drawn = [{"name": item.name, "description": item.description, "mermaid": item.mermaid()} for item in machines]
    flow = "flowchart TB\n" + "\n".join(f"    {a} -->|{what}| {b}" for a, what, b in _RELATIONS)
    return [*drawn, {"name": "entity_relationships", "description": "Who meets whom in a session", "mermaid": flow}]
