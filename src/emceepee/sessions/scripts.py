"""What a session needs of code mode: to keep its scripts, and to go on with them."""

from typing import Any, Protocol

from emceepee.sessions.call import Call, Callee
from emceepee.state.task import Task


class Scripts(Protocol):
    """The scripts of all sessions."""

    def record(self, call: Call) -> bytes | None:
        """A script as it stands, for another process to go on with; None if it cannot be kept."""
        ...

    def restore(self, session: Any, task: Task, record: bytes) -> Callee | None:
        """Such a script, to be run as a call of that session; None if it cannot be read here."""
        ...
