"""The stored form of a call to a backend, from which another process can resume it.

Either the backend runs the call as its own task, or the call was not sent yet.
"""

from dataclasses import dataclass

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.connection import Connection
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.sessions.call import Call
from emceepee.sessions.records import read, write
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class StoredTask:
    """The record is secret in full: its holder can impersonate emceepee at the backend."""

    task: BackendTask | None = None  # the backend's own task
    params: JsonObject | None = None  # of a request that was not sent
    url: str  # of the backend; another backend must not get the record
    session: JsonObject | None  # emceepee's session at the backend

    @classmethod
    def of(cls, call: Call) -> "StoredTask | None":
        connection = call.connection
        target = connection.spec.target if isinstance(connection, Connection) else None
        if not isinstance(connection, Connection) or not isinstance(target, HttpTarget):
            return None
        if call.backend_task is not None:
            return cls(task=call.backend_task, url=target.url, session=connection.session_record())
        return cls(params=call.params, url=target.url, session=None) if call.is_unsent else None

    def is_of(self, spec: BackendSpec) -> bool:
        return isinstance(spec.target, HttpTarget) and spec.target.url == self.url

    def to_bytes(self) -> bytes:
        task = None if self.task is None else self.task.to_record()
        unsent = {} if self.params is None else {"params": self.params}
        return write(task=task, url=self.url, session=self.session, **unsent)

    @classmethod
    def from_bytes(cls, data: bytes) -> "StoredTask":
        """Raises: UnreadableRecord, KeyError, TypeError, ValueError."""
        fields = read(data)
        params = fields.get("params")
        return cls(
            task=None if params is not None else BackendTask.from_record(fields["task"]),
            params=params,
            url=fields["url"],
            session=fields["session"],
        )
