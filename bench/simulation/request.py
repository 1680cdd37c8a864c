"""A simulated request, on its way through the real router."""

from dataclasses import dataclass
from typing import Any

from bench.simulation.tally import Way
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.server.http.exchange import HttpRequest
from emceepee.state.session_key import SessionKey
from emceepee.web.asgi import CONNECTION
from emceepee.wire.json_types import JsonObject

_NOBODY = CallerIdentity()
_ITSELF = "bench.simulated"


class _Caller:
    """A connection whose caller stays."""

    def is_gone(self) -> bool:
        return False


_EXTENSIONS = {CONNECTION: _Caller()}


async def _receive() -> JsonObject:
    return {}


@dataclass(slots=True, eq=False)
class SimulatedRequest:
    """A simulated request and its outcome."""

    key: SessionKey
    changes_something: bool
    way: Way = Way.LOCAL
    hops: int = 0
    was_guessed: bool = False
    wrong_guesses: int = 0
    is_served: bool = False
    is_lost: bool = False  # answered that it may have run
    is_cut: bool = False  # its connection ended at a replica that was lost
    is_unknown: bool = False
    status: int = 0

    @classmethod
    def of(cls, http: HttpRequest) -> "SimulatedRequest":
        found = http.scope[_ITSELF]
        assert isinstance(found, cls)
        return found

    def as_http(self) -> HttpRequest:
        self.status = 0
        scope: dict[str, Any] = {"extensions": _EXTENSIONS, _ITSELF: self}
        return HttpRequest(scope, {}, _receive, self.send, _NOBODY)

    async def send(self, part: JsonObject) -> None:
        self.status = part.get("status", self.status)
