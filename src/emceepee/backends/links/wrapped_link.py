"""Base class of links that wrap another link and delegate to it."""

from collections.abc import Mapping

from emceepee.backends.link import Link
from emceepee.state.connection.connection_state import LinkEnd
from emceepee.wire.json_types import JsonObject


class WrappedLink:
    """Delegates everything to the wrapped link. Its connection uses it like any other link."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self.facts, self.closed = link.facts, link.closed

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._link!r}>"

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        return await self._link.request(method, params, origin=origin, headers=headers)

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._link.notify(method, params)

    async def send_answer(self, message: JsonObject) -> None:
        await self._link.send_answer(message)

    @property
    def mirrors_arguments(self) -> bool:
        return self._link.mirrors_arguments

    @property
    def is_busy(self) -> bool:
        return self._link.is_busy

    @property
    def identity(self) -> str | None:
        return self._link.identity

    @property
    def resumption(self) -> object | None:
        return self._link.resumption

    def set_log_level(self, level: str) -> None:
        self._link.set_log_level(level)

    def leave_session(self) -> None:
        self._link.leave_session()

    def end(self, end: LinkEnd) -> None:
        self._link.end(end)

    async def close(self) -> None:
        await self._link.close()

    def process(self) -> JsonObject | None:
        return self._link.process()
