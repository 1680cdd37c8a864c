"""A request to the console, and its routes."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from emceepee.errors import InvalidArguments
from emceepee.web.asgi import BodyTooLarge, Headers, Receive, Send, read_body
from emceepee.wire.codec import decode
from emceepee.wire.json_types import JsonObject

LARGEST_BODY = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleRequest:
    """An authenticated request; on open routes `principal` may be None."""

    principal: str | None
    path: str
    query: Mapping[str, str]
    headers: Headers
    receive: Receive
    send: Send
    peer: str | None = None  # the client's address
    is_logged_in: Callable[[], bool] = lambda: True  # whether the login is still valid, for long responses
    is_from_peer: bool = False  # another replica forwards a page's request and expects only this replica's data

    async def body(self) -> bytes:
        """Raises: InvalidArguments, CallerLeft."""
        try:
            return await read_body(self.receive, LARGEST_BODY)
        except BodyTooLarge:
            raise InvalidArguments(f"The body is larger than {LARGEST_BODY} bytes.") from None

    async def json(self) -> JsonObject:
        """The body as an object. Raises: InvalidArguments, CallerLeft."""
        try:
            value = decode(await self.body())
        except ValueError:
            raise InvalidArguments("The body is not JSON.") from None
        if not isinstance(value, dict):
            raise InvalidArguments("The body must be a JSON object.")
        return value


@dataclass(frozen=True, slots=True)
class Route:
    """`is_open` routes show no user data and need no login; all others require one."""

    method: str
    path: str
    serve: Callable[[ConsoleRequest], Awaitable[None]]
    is_open: bool = False
