"""The interface of every link, for any transport: raw JSON in both directions, two kinds of errors, one listener."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from emceepee.backends.backend_task import BackendTask
from emceepee.state.connection.connection_state import LinkEnd
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

FACTS_BYTES = 1 << 20


class RpcError(Exception):
    """The backend answered with an error. `error` is the complete JSON-RPC error object.

    `status` is the HTTP status of the response, if that is an error status.
    """

    def __init__(self, error: JsonObject, *, status: int = 0) -> None:
        super().__init__(str(error.get("message") or error))
        self.error, self.status = error, status

    @property
    def code(self) -> int | None:
        code = self.error.get("code")
        return code if isinstance(code, int) else None


class ServerLost(RpcError):
    """A question from the backend cannot be answered, because the backend is gone."""


class LinkFailure(StrEnum):
    """Why a request got no answer."""

    UNREACHABLE = "unreachable"
    """The connection failed or broke."""
    REFUSED = "refused"
    """An HTTP error status without a JSON-RPC error in the body."""
    SESSION_LOST = "session_lost"
    """The backend no longer recognizes our session."""
    PROTOCOL = "protocol"
    """The answer violates the protocol."""
    CLOSED = "closed"
    """The link was closed, or its process has exited."""


class LinkError(Exception):
    """A request got no answer. `status` is the HTTP status, if any.

    `may_have_run` is False only if the backend certainly did not receive the request. In that case, the request can
    safely be sent again.
    """

    def __init__(self, failure: LinkFailure, message: str, *, status: int = 0, may_have_run: bool = True) -> None:
        super().__init__(message)
        self.failure, self.status, self.may_have_run = failure, status, may_have_run


class NoAccess(LinkError):
    """The backend denied access because a token is missing or insufficient. The request did not run.

    `wants_person` means that the user was asked to log in. After the login, the request can be sent again.
    """

    def __init__(self, message: str, *, status: int = 401, wants_person: bool = False) -> None:
        super().__init__(LinkFailure.REFUSED, message, status=status, may_have_run=False)
        self.wants_person = wants_person


class Listener(Protocol):
    """Receives all messages that a link passes upward.

    `origin` is the value that was passed to `request` for the related call, or None if that call is unknown.
    """

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        """Answer a question of the backend.

        Raise RpcError to reject it. The call is cancelled if the backend withdraws the question. `seconds` is how long
        the backend can wait for the answer, if known.
        """
        ...

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        """Handle a notification. Notifications arrive in wire order. Must not raise."""
        ...

    def handle_output(self, line: str, source: str) -> None:
        """Handle a line of process output that is not a protocol message. `source` is stderr or stdout."""
        ...

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        """Take over a request that must outlive the link, before `handle_request` sees it, and answer it on any link.

        Return the task that answers it, or None to leave it to `handle_request`.
        """
        ...

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        """Handle a status change of the backend's task that runs a call."""
        ...


@dataclass(slots=True, kw_only=True)
class ServerFacts:
    """The backend's description of itself when the link opened."""

    protocol_version: str = ""
    server_info: JsonObject = field(default_factory=dict)
    capabilities: JsonObject = field(default_factory=dict)
    instructions: str | None = None
    is_modern: bool = False

    def __post_init__(self) -> None:
        """Raises: LinkError if the facts are too large: they are stored as long as the link lives, and shown
        repeatedly.
        """
        if len(encode([self.server_info, self.capabilities, self.instructions])) > FACTS_BYTES:
            raise LinkError(LinkFailure.PROTOCOL, f"its description of itself exceeds {FACTS_BYTES} bytes")


class Link(Protocol):
    """One live connection to a backend."""

    facts: ServerFacts
    closed: "asyncio.Future[LinkEnd]"  # resolved when the link is no longer usable

    def end(self, end: LinkEnd) -> None:
        """End the link: resolve `closed`, unless already resolved, then fail the waiting requests."""
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
        """Send a request and return the raw result.

        If the wait is cancelled, the backend is notified. Only HTTP links use `headers`.

        Raises:
            RpcError: the backend answered with an error.
            LinkError: no answer arrived.
        """
        ...

    async def notify(self, method: str, params: JsonObject | None = None) -> None: ...

    async def send_answer(self, message: JsonObject) -> None:
        """Answer a request of the backend, possibly one from an earlier link. Raises: RpcError, LinkError."""
        ...

    def set_log_level(self, level: str) -> None:
        """Set the log level of all later requests.

        This is for 2026-07-28 only. The handshake era has a request for it.
        """
        ...

    @property
    def is_busy(self) -> bool:
        """Whether a health check would queue behind a request. True for a busy pipe, never for HTTP."""
        ...

    @property
    def identity(self) -> str | None:
        """A value that stays the same while the backend keeps its state for us; None if it keeps none."""
        ...

    @property
    def resumption(self) -> object | None:
        """The data that the next link needs to resume this link's state at the backend, if any."""
        ...

    def leave_session(self) -> None:
        """Leave the state at the backend when this link closes, because another link will resume it."""
        ...

    async def close(self) -> None:
        """Release all resources. Requests in flight fail."""
        ...

    def process(self) -> JsonObject | None:
        """The child process behind the link, if any: its pid, and its exit code or signal after it has exited."""
        ...


class LinkLifetime:
    """The end of a link. It happens once, and only `end` writes it."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[LinkEnd] = asyncio.get_running_loop().create_future()

    def end(self, end: LinkEnd, error: LinkError | None = None) -> None:
        """Resolve `closed` first, then fail the requests in flight with `error`.

        The event loop runs callbacks in the order in which they were scheduled. So the supervisor, which waits for
        `closed`, announces the loss and records its effects before any caller learns that its call failed.
        """
        if not self.closed.done():
            self.closed.set_result(end)
            self._fail_requests(error or LinkError(LinkFailure.CLOSED, end.reason))

    def __repr__(self) -> str:
        end = self.closed.result() if self.closed.done() else None
        return f"<{type(self).__name__} {self._target()} {f'{end.kind}: {end.reason}' if end else 'open'}>"

    def _target(self) -> str:
        """The link's destination, without secrets."""
        return ""

    def _fail_requests(self, error: LinkError) -> None:
        """Fail the requests that would not notice the end by themselves."""
