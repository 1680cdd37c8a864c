"""A diagram of every state machine, generated from the transition table that guards the code."""

from emceepee.state.call_step import CALL
from emceepee.state.connection.connection_state import CONNECTION
from emceepee.state.question import ELICITATION, SAMPLING
from emceepee.state.task import TASK
from emceepee.state.timer import TIMER
from emceepee.wire.json_types import JsonObject

# Interactions between parts: (from, label, to).
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
    return [
        *drawn,
        {"name": "entity_relationships", "description": "Interactions between the parts of a session", "mermaid": flow},
    ]
