"""What every link promises, whatever its transport: raw JSON both ways, two failures, one way upward."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from emceepee.backends.backend_task import BackendTask
from emceepee.state.connection.connection import LinkEnd
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

FACTS_BYTES = 1 << 20


class RpcError(Exception):
    """The backend answered with an error; `error` is that JSON object, whole.

    `status` is the HTTP status it came with, if that was an error too.
    """

    def __init__(self, error: JsonObject, *, status: int = 0) -> None:
        super().__init__(str(error.get("message") or error))
        self.error, self.status = error, status

    @property
    def code(self) -> int | None:
        code = self.error.get("code")
        return code if isinstance(code, int) else None


class ServerLost(RpcError):
    """A question of the backend has no answer, because the backend is no longer there to get it."""


class Failure(StrEnum):
    """Why no answer could be had."""

    UNREACHABLE = "unreachable"
    """No connection, or it broke."""
    REFUSED = "refused"
    """An HTTP status other than success, with no JSON-RPC error in it."""
    SESSION_LOST = "session_lost"
    """The backend no longer knows our session."""
    PROTOCOL = "protocol"
    """An answer came, but not one that the protocol allows."""
    CLOSED = "closed"
    """The link was closed, or its process has exited."""


class LinkError(Exception):
    """No answer could be had. `status` is the HTTP status, where there was one.

    `may_have_run` is False only where the backend certainly did not take the request: then it may be sent again.
    """

    def __init__(self, failure: Failure, message: str, *, status: int = 0, may_have_run: bool = True) -> None:
        super().__init__(message)
        self.failure, self.status, self.may_have_run = failure, status, may_have_run


class NoAccess(LinkError):
    """The backend let nothing in, for want of a token. The request did not run.

    `wants_person`: someone has been asked to log in, and after that it may be sent again.
    """

    def __init__(self, message: str, *, status: int = 401, wants_person: bool = False) -> None:
        super().__init__(Failure.REFUSED, message, status=status, may_have_run=False)
        self.wants_person = wants_person


class Listener(Protocol):
    """The one upward way. `origin` is what `request` was given for the call this belongs to, None where unknown."""

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        """The backend asks something of its client. Raise RpcError to refuse; cancelled if the backend withdraws.

        `seconds` is how long the backend can wait for the answer, where that is known.
        """
        ...

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        """In wire order; must not raise."""
        ...

    def handle_output(self, line: str, source: str) -> None:
        """A line of the process that is not protocol: `source` is stderr or stdout."""
        ...

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        """The same as `handle_request`, before it: what is to outlive the link is taken, and answered on any link.

        Returns who answers it; None if it is not taken.
        """
        ...

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        """The backend runs the call as a task of its own, and something about that is new."""
        ...


@dataclass(slots=True, kw_only=True)
class ServerFacts:
    """What the backend told of itself when the link opened."""

    protocol_version: str = ""
    server_info: JsonObject = field(default_factory=dict)
    capabilities: JsonObject = field(default_factory=dict)
    instructions: str | None = None
    is_modern: bool = False

    def __post_init__(self) -> None:
        """Raises: LinkError: they are kept as long as the link, and shown again and again."""
        if len(encode([self.server_info, self.capabilities, self.instructions])) > FACTS_BYTES:
            raise LinkError(Failure.PROTOCOL, f"it tells more than {FACTS_BYTES} bytes of itself")


class Link(Protocol):
    """One live connection to a backend."""

    facts: ServerFacts
    closed: "asyncio.Future[LinkEnd]"  # resolved when the link can carry nothing any more

    def end(self, end: LinkEnd) -> None:
        """It carries nothing any more: resolve `closed`, if that was not done before, then fail what waits on it."""
        ...

    @property
    def mirrors_arguments(self) -> bool:
        """Whether this link repeats some of a tool's arguments in HTTP headers."""
        ...

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        """Ask, and return the raw result. Cancelling the wait tells the backend; `headers` matter to HTTP only.

        Raises:
            RpcError: the backend answered with an error.
            LinkError: no answer could be had.
        """
        ...

    async def notify(self, method: str, params: JsonObject | None = None) -> None: ...

    async def send_answer(self, message: JsonObject) -> None:
        """Answer a request of the backend, which may have come on an earlier link. Raises: RpcError, LinkError."""
        ...

    def set_log_level(self, level: str) -> None:
        """In the 2026-07-28 era a log level rides in every request; in the handshake era it is asked for once."""
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a check would have to queue behind a request: true of one pipe, never of HTTP."""
        ...

    @property
    def identity(self) -> str | None:
        """What is the same as long as the backend has kept its state for us; None if it keeps none."""
        ...

    @property
    def resumption(self) -> object | None:
        """What the next link to the same backend can be opened with to find its state again, if there is any."""
        ...

    def leave_session(self) -> None:
        """When it is closed, the backend is to keep its state for us: another link will come for it."""
        ...

    async def close(self) -> None:
        """Release everything; requests under way fail."""
        ...

    def process(self) -> JsonObject | None:
        """The child process behind the link, if there is one: pid, and if it has ended exit code or signal."""
        ...


class LinkLifetime:
    """The end of a link, of which there is one, with one writer."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[LinkEnd] = asyncio.get_running_loop().create_future()

    def end(self, end: LinkEnd, error: LinkError | None = None) -> None:
        """Events before failed calls: `closed` is resolved first, then the requests under way fail, with `error`.

        The event loop runs callbacks in the order in which they were scheduled. So the supervisor, which waits for
        `closed`, has announced the loss and counted what it costs before any caller is told that its call failed.
        """
        if not self.closed.done():
            self.closed.set_result(end)
            self._fail_requests(error or LinkError(Failure.CLOSED, end.reason))

    def __repr__(self) -> str:
        end = self.closed.result() if self.closed.done() else None
        return f"<{type(self).__name__} {self._target()} {f'{end.kind}: {end.reason}' if end else 'open'}>"

    def _target(self) -> str:
        """Whom it leads to, without secrets."""
        return ""

    def _fail_requests(self, error: LinkError) -> None:
        """Where requests do not notice by themselves."""
