"""The interface of code mode for sessions: store scripts and resume them."""

from typing import Any, Protocol

from emceepee.sessions.call import Call, Callee
from emceepee.state.task import Task


class Scripts(Protocol):
    """The scripts of all sessions."""

    def record(self, call: Call) -> bytes | None:
        """Return the current state of a script for another process to resume, or None if it cannot be stored."""
        ...

    def restore(self, session: Any, task: Task, record: bytes) -> Callee | None:
        """Return a stored script as a callee for the session, or None if this process cannot read it."""
        ...
