"""What the links over one shared two-way channel have in common: everything but the channel."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from mcp_types import LOG_LEVEL_META_KEY
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from emceepee.backends.duplex import Duplex
from emceepee.backends.json_rpc import unreadable
from emceepee.backends.link import LinkError, LinkLifetime, Listener, ServerFacts
from emceepee.backends.negotiation import Terms, envelope, negotiate
from emceepee.codec import Unreadable, decode
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner


class DuplexLink(LinkLifetime, ABC):
    """A subclass brings the channel: it sends with `_send`, and gives what arrives to `_receive`."""

    mirrors_arguments = False

    def __init__(self, name: str, listener: Listener, *, most_requests: int) -> None:
        super().__init__()
        self._listener = listener
        self._tasks = TaskOwner(name)
        self._duplex = Duplex(self._send, listener, self._tasks, most_requests=most_requests, reply=self._reply)
        self._terms = Terms()
        self.facts = ServerFacts()

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,  # a matter of the newer HTTP transport
    ) -> JsonObject:
        return await self._duplex.request(method, params, origin=origin)

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._duplex.notify(method, params)

    def set_log_level(self, level: str) -> None:
        if self._duplex.envelope is not None:
            self._duplex.envelope[LOG_LEVEL_META_KEY] = level

    @property
    def is_busy(self) -> bool:
        return self._duplex.in_flight > 0

    @property
    def identity(self) -> None:
        return None  # a new channel is a new conversation

    @property
    def resumption(self) -> None:
        return None

    def _fail_requests(self, error: LinkError) -> None:
        self._duplex.end(error)

    @abstractmethod
    async def _send(self, message: JsonObject) -> None:
        """Raises: LinkError."""

    async def _reply(self, message: JsonObject) -> None:
        """Answer the backend's own request. Raises: LinkError."""
        await self._send(message)

    async def _negotiate(self, terms: Terms) -> None:
        """Settle the era with whoever is at the other end."""
        self._terms = terms
        self.facts = await negotiate(self._discover, self._initialize, terms)
        if self.facts.is_modern:
            self._duplex.envelope = envelope(self.facts.protocol_version, terms.capabilities)
        else:
            await self.notify("notifications/initialized")

    def _receive(self, data: bytes) -> None:
        """Take one message; what is none is noise, and kept as such."""
        try:
            understood = self._duplex.receive(decode(data))
        except Unreadable as error:
            understood = self._duplex.receive(unreadable(data, error))
        except ValueError:
            understood = False
        if not understood:
            self._listener.handle_output(data.decode("utf-8", "replace"), "stdout")

    async def _discover(self, method: str, params: JsonObject) -> JsonObject:
        meta = envelope(MODERN_PROTOCOL_VERSIONS[-1], self._terms.capabilities)
        return await self._duplex.request(method, params, origin=None, meta=meta)

    async def _initialize(self, method: str, params: JsonObject) -> JsonObject:
        return await self._duplex.request(method, params, origin=None)
