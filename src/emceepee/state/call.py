"""A call, from the side of the one who waits for it, as a table."""

from enum import StrEnum

from emceepee.state.machine import Machine, Move


class CallStage(StrEnum):
    """A call, from the side of the one who waits for it."""

    IN_FLIGHT = "in_flight"
    """Sent; someone waits."""
    RETURNED = "returned_result"
    """The result went back directly."""
    FAILED = "returned_error"
    """The error went back directly."""
    CANCELLED = "cancelled"
    """The caller cancelled its request, and not only because it took long."""
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
        Move(_S.IN_FLIGHT, _S.PROMOTED, "timeout_ms passes, the server asks something, or the client stops waiting"),
    ],
    ends="The caller is done with it",
)
