"""The interface through which code mode calls emceepee's tools for a script."""

from dataclasses import dataclass
from typing import Any, Protocol

from emceepee.sessions.session import Session
from emceepee.telemetry.spans import Span
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """A tool's answer in `value`. If `is_raw`, it is the server's own result.

    If the call became a task, only `task_id` is set.
    """

    value: JsonObject
    is_raw: bool = False
    task_id: str | None = None


class ToolAccess(Protocol):
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
    ) -> ToolAnswer:
        """Call a tool. `caller` is the caller that sent the script, or None after a restart.

        `call_id` identifies a call to a server.

        Raises:
            EmceepeeError
        """
        ...

    def resolve(self, tool: str, arguments: JsonObject) -> tuple[str, JsonObject]:
        """Return the actual tool and its arguments: execute_tool on emceepee itself calls one of its own tools."""
        ...

    def is_repeatable(self, tool: str) -> bool:
        """Return whether repeating the call is safe: the tool only reads and asks no server to run anything."""
        ...

    def parameters_of(self, tool: str) -> str:
        """Return the tool's parameters on one line."""
        ...
