"""What is kept of a call that its backend runs as a task of its own, so that another process can go on with it."""

from dataclasses import dataclass

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.connection import Connection
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.json_types import JsonObject
from emceepee.sessions.call import Call
from emceepee.sessions.records import read, write


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class KeptTask:
    """All of it is secret: whoever has it can take our place at the backend."""

    task: BackendTask
    url: str  # of the backend: what it knows is told to no other
    session: JsonObject | None  # that we have at the backend

    @classmethod
    def of(cls, call: Call) -> "KeptTask | None":
        connection = call.connection
        if call.backend_task is None or not isinstance(connection, Connection):
            return None
        target = connection.spec.target
        if not isinstance(target, HttpTarget):
            return None
        return cls(task=call.backend_task, url=target.url, session=connection.session_record())

    def is_of(self, spec: BackendSpec) -> bool:
        return isinstance(spec.target, HttpTarget) and spec.target.url == self.url

    def to_bytes(self) -> bytes:
        return write(task=self.task.to_record(), url=self.url, session=self.session)

    @classmethod
    def from_bytes(cls, data: bytes) -> "KeptTask":
        """Raises: UnreadableRecord, KeyError, TypeError, ValueError."""
        fields = read(data)
        return cls(task=BackendTask.from_record(fields["task"]), url=fields["url"], session=fields["session"])
