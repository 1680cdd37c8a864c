"""Which era a configuration spoke last time, so that the next connection to it need not ask again."""

from collections import OrderedDict

from emceepee.backends.link import ServerFacts
from emceepee.backends.spec import HttpTarget, Mode, StdioTarget
from emceepee.clock import Clock

KEPT_SECONDS = 3600.0  # a server that learned the other era meanwhile is noticed after this long, or when it refuses
CORRECTED_SECONDS = 86_400.0  # one that cannot ask in 2026-07-28 costs a call each time that this is found out
MOST = 1000
Key = tuple[str, ...]
# What servers of both eras say when a tool asks in the manner of the handshake era while it is served in 2026-07-28.
_CANNOT_ASK = (
    "elicitation via server-initiated requests is unavailable on 2026-07-28 connections",  # FastMCP 4
    "this transport context has no back-channel for server-initiated requests",  # Python SDK 2
    "Server-to-client requests are not available on protocol revision 2026-07-28",  # TypeScript SDK 2
)


class EraMemory:
    """Only a hint: whoever follows it in vain forgets it and asks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[Key, tuple[Mode, float]] = OrderedDict()

    def recall(self, target: HttpTarget | StdioTarget) -> Mode | None:
        mode, until = self._known.get(_key(target), (None, 0.0))
        return mode if until > self._clock.monotonic() else None

    def learn(self, target: HttpTarget | StdioTarget, facts: ServerFacts) -> None:
        """Learned again it is not kept for longer: one day it is asked again."""
        if self.recall(target) is not None:
            return
        mode: Mode = "2026-07-28" if facts.is_modern else "legacy"
        self._known[_key(target)] = (mode, self._clock.monotonic() + KEPT_SECONDS)
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    def correct(self, target: HttpTarget | StdioTarget) -> None:
        """It speaks 2026-07-28, but needs the handshake era."""
        self._known[_key(target)] = ("legacy", self._clock.monotonic() + CORRECTED_SECONDS)

    def forget(self, target: HttpTarget | StdioTarget) -> None:
        self._known.pop(_key(target), None)


def cannot_ask(words: str) -> bool:
    """Whether an error of a tool means that its server can only ask in the handshake era."""
    return any(said in words for said in _CANNOT_ASK)


def _key(target: HttpTarget | StdioTarget) -> Key:
    if isinstance(target, HttpTarget):
        return (target.url,)
    return ("", target.command, *target.args)
