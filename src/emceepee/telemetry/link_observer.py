"""The interface for observers of the requests that emceepee sends to servers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class CalledServer:
    """The called server. Without an address it is a program; the address of a Unix socket is its path."""

    name: str
    address: str | None = None
    port: int | None = None
    is_socket: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRequest:
    """A request that is about to be sent."""

    callee: CalledServer
    protocol_version: str
    method: str
    params: JsonObject


class SentRequest(Protocol):
    """One request from before it is sent until its end. `meta` and `headers` are sent with it."""

    @property
    def meta(self) -> Mapping[str, str]: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    def number(self, number: int) -> None:
        """Record the id that it is sent with."""
        ...

    def answered(self, result: JsonObject) -> None: ...

    def failed(self, why: str, code: int | None) -> None:
        """Record a failure. `why` is one of a few fixed words, and `code` is the code of the server's error."""
        ...


class LinkObserver(Protocol):
    """Observes every link to a server and every request on it."""

    def begin(self, request: OutgoingRequest) -> SentRequest: ...

    def link_ended(self, callee: CalledServer, protocol_version: str, seconds: float) -> None:
        """A link ended after `seconds`."""
        ...
