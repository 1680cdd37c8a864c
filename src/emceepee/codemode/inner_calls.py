"""What code mode needs of the tools of emceepee: to call them as a part of a script."""

from dataclasses import dataclass
from typing import Any, Protocol

from emceepee.sessions.session import Session
from emceepee.telemetry.spans import Span
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerAnswer:
    """`value` is what the tool returned; of `is_raw` ones the server's own result. A call that became a task has only
    that."""

    value: JsonObject
    is_raw: bool = False
    task_id: str | None = None


class InnerCalls(Protocol):
    """The tools that scripts can call."""

    async def call(
        self,
        tool: str,
        arguments: JsonObject,
        session: Session,
        *,
        caller: Any,
        parent: Span | None,
        call_id: str,
    ) -> InnerAnswer:
        """`caller` is whose script it is, None after a restart. `call_id` is what a call to a server is known by.

        Raises:
            EmceepeeError
        """
        ...

    def resolve(self, tool: str, arguments: JsonObject) -> tuple[str, JsonObject]:
        """The tool that is meant, and its arguments: execute_tool on emceepee itself calls one of its own tools."""
        ...

    def is_repeatable(self, tool: str) -> bool:
        """Whether to call it again changes nothing: it only reads, and asks no server to run anything."""
        ...

    def parameters_of(self, tool: str) -> str:
        """The tool's parameters in a line."""
        ...
