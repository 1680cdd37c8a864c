"""The stored state of a waiting script, from which another process can continue it."""

import base64
from dataclasses import dataclass, field
from typing import Any

from emceepee.codemode.values import Size
from emceepee.sessions.records import read, write
from emceepee.wire.json_types import JsonObject


@dataclass(slots=True, kw_only=True)
class PendingCall:
    """A call that has no answer yet, or whose answer the script has not received yet."""

    number: int  # the sandbox's number for it
    function: str  # the method of mcp, or the tool of emceepee
    arguments: JsonObject
    key: str | None = None  # the field of the answer that the script receives
    call_id: str = ""  # of the call in the session, and of its task, if it becomes one
    wakes_at: str | None = None  # when a sleep ends
    answer: Any = None  # in the sandbox's format, once it has arrived
    size: Size = Size()  # of the arguments
    answer_size: Size = Size()

    def to_record(self) -> list[Any]:
        return [self.number, self.function, self.arguments, self.key, self.call_id, self.wakes_at, self.answer]

    @classmethod
    def from_record(cls, record: list[Any]) -> "PendingCall":
        """Raises: ValueError, TypeError."""
        number, function, arguments, key, call_id, wakes_at, answer = record
        return cls(
            number=int(number),
            function=function,
            arguments=arguments,
            key=key,
            call_id=call_id,
            wakes_at=wakes_at,
            answer=answer,
        )


@dataclass(slots=True, kw_only=True)
class KeptScript:
    """A script's state. All of it is secret: the snapshot contains every value of the script."""

    version: str  # of the sandbox
    snapshot: bytes  # empty: it has made no call yet and starts again from the beginning
    source: str = ""  # as executed
    pending: list[PendingCall] = field(default_factory=list)
    modules: JsonObject = field(default_factory=dict)
    log: str = ""
    log_dropped: int = 0
    calls: int = 0
    computed: float = 0.0  # seconds
    began_at: str

    @property
    def weight(self) -> int:
        """Return the approximate size in bytes, including the arguments and answers of its calls."""
        return len(self.snapshot) + sum(call.size.size + call.answer_size.size for call in self.pending)

    def to_bytes(self) -> bytes:
        return write(
            sandbox=self.version,
            snapshot=base64.b64encode(self.snapshot).decode(),
            source=self.source,
            pending=[call.to_record() for call in self.pending],
            modules=self.modules,
            log=self.log,
            logDropped=self.log_dropped,
            calls=self.calls,
            computed=self.computed,
            beganAt=self.began_at,
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> "KeptScript":
        """Raises: UnreadableRecord, KeyError, TypeError, ValueError."""
        fields = read(data)
        return cls(
            version=fields["sandbox"],
            snapshot=base64.b64decode(fields["snapshot"]),
            source=fields.get("source", ""),
            pending=[PendingCall.from_record(record) for record in fields["pending"]],
            modules=fields["modules"],
            log=fields["log"],
            log_dropped=fields["logDropped"],
            calls=fields["calls"],
            computed=fields["computed"],
            began_at=fields["beganAt"],
        )
