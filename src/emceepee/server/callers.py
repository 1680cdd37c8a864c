"""What every transport tells the tools about who calls."""

from collections.abc import Awaitable, Callable

from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.json_types import JsonObject
from emceepee.server.messages import Request, progress_token
from emceepee.sessions.calls import Call
from emceepee.sessions.directory import KeyKind, SessionDirectory, SessionKey
from emceepee.sessions.session import Session
from emceepee.tools.declaration import Caller

Say = Callable[[JsonObject], None]
MayAdd = Callable[[BackendSpec], Awaitable[None]]


class Office:
    """Explicit sessions of one principal: opened, found by their handle, closed."""

    def __init__(self, directory: SessionDirectory, principal: str) -> None:
        self._directory, self._principal = directory, principal
        self.idle_ms = directory.kept_ms

    async def open(self) -> str:
        key, _ = await self._directory.open_handle(self._principal)
        return key.value

    async def close(self, handle: str) -> None:
        """Raises: EmceepeeError."""
        if not await self._directory.close(self._key(handle)):
            raise _ended(handle)

    def find(self, handle: str) -> Session:
        """Raises: EmceepeeError."""
        session = self._directory.find(self._key(handle))
        if session is None:
            raise _ended(handle)
        return session

    def _key(self, handle: str) -> SessionKey:
        return SessionKey(self._principal, KeyKind.HANDLE, handle)


def _ended(handle: object) -> EmceepeeError:
    shown = str(handle)[:12]
    return EmceepeeError(
        f'The session "{shown}…" is not known: it has ended, or was never yours. Call open_session and use the handle '
        "it returns.",
        code=ErrorCode.SESSION_NOT_FOUND,
    )


def caller_for(
    request: Request,
    say: Say,
    *,
    office: Office | None = None,
    may_add: MayAdd | None = None,
    is_gone: Callable[[], bool] = lambda: False,
    on_call: Callable[[Session, Call], None] | None = None,
) -> Caller:
    """The facts of one request."""
    token = progress_token(request.params)

    def tell(params: JsonObject) -> None:
        say({"jsonrpc": "2.0", "method": "notifications/progress", "params": params | {"progressToken": token}})

    on_progress = None if token is None else tell
    return Caller(on_progress=on_progress, office=office, may_add=may_add, is_gone=is_gone, on_call=on_call)
