"""Remembers the era that each server spoke last, so that the next connection can skip the probe.

Some servers need both eras: 2026-07-28 for tasks and other extensions, and the handshake era for tools that ask
questions. For such a server, emceepee remembers the tools that ask, and makes each call in the era that it needs.
"""

from collections import OrderedDict

from emceepee.backends.link import ServerFacts
from emceepee.backends.spec import HttpTarget, Mode, StdioTarget, Target
from emceepee.clock import Clock

KEPT_SECONDS = 3600.0  # when it expires, a server that adopted the other era is noticed; a refusal is noticed earlier
CORRECTED_SECONDS = 86_400.0  # longer, because each discovery that a server cannot ask in 2026-07-28 costs a call
MOST = 1000
MOST_CALLS = 100  # maximum number of calls per server that are remembered to need the handshake era
Key = tuple[str, ...]
# Errors of dual-era servers when a tool asks the handshake-era way on a 2026-07-28 connection.
_CANNOT_ASK = (
    "elicitation via server-initiated requests is unavailable on 2026-07-28 connections",  # FastMCP 4
    "this transport context has no back-channel for server-initiated requests",  # Python SDK 2
    "Server-to-client requests are not available on protocol revision 2026-07-28",  # TypeScript SDK 2
)


class EraMemory:
    """Remembered eras are only hints: if one proves wrong, it is forgotten and the server is probed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: OrderedDict[Key, tuple[Mode, float]] = OrderedDict()
        self._corrected: set[Key] = set()
        # Servers that need both eras, with the calls that ask. Every 2026-07-28 call checks whether this is empty.
        self.split_servers: OrderedDict[Key, set[str]] = OrderedDict()

    def recall(self, target: Target) -> Mode | None:
        mode, until = self._known.get(_key(target), (None, 0.0))
        return mode if until > self._clock.monotonic() else None

    def learn(self, target: Target, facts: ServerFacts) -> None:
        """Remember the era of a server.

        An existing entry is not extended, so that the server is probed again eventually.
        """
        if self.recall(target) is not None:
            return
        mode: Mode = "2026-07-28" if facts.is_modern else "legacy"
        self._known[_key(target)] = (mode, self._clock.monotonic() + KEPT_SECONDS)
        if len(self._known) > MOST:
            self._corrected.discard(self._known.popitem(last=False)[0])

    def correct(self, target: Target) -> None:
        """Remember that a server speaks 2026-07-28 but needs the handshake era."""
        self._known[_key(target)] = ("legacy", self._clock.monotonic() + CORRECTED_SECONDS)
        self._corrected.add(_key(target))

    def take_back(self, target: Target) -> bool:
        """Remember that a server needs 2026-07-28 as well.

        Return False if its handshake era was its own choice and not a correction.
        """
        key = _key(target)
        if key not in self._corrected:
            return False
        self._corrected.discard(key)
        self._known[key] = ("2026-07-28", self._clock.monotonic() + CORRECTED_SECONDS)
        self.split_servers.setdefault(key, set())
        return True

    def forget(self, target: Target) -> None:
        key = _key(target)
        self._known.pop(key, None)
        self._corrected.discard(key)
        self.split_servers.pop(key, None)

    def forget_correction(self, target: Target) -> None:
        """Forget the era, unless the server itself chose it."""
        if _key(target) in self._corrected or _key(target) in self.split_servers:
            self.forget(target)

    # Servers that need both eras.

    def is_split(self, target: Target) -> bool:
        return _key(target) in self.split_servers

    def split(self, target: Target, call: str) -> None:
        """Remember that this call needs the handshake era while others need 2026-07-28."""
        calls = self.split_servers.setdefault(_key(target), set())
        if len(calls) < MOST_CALLS:
            calls.add(call)
        if len(self.split_servers) > MOST:
            self.split_servers.popitem(last=False)

    def asks(self, target: Target, call: str) -> bool:
        """Return whether this call is known to need the handshake era."""
        return call in self.split_servers.get(_key(target), ())


def cannot_ask(words: str) -> bool:
    """Return whether a tool's error means that its server can ask only in the handshake era."""
    return any(said in words for said in _CANNOT_ASK)


def _key(target: Target) -> Key:
    if isinstance(target, HttpTarget):
        return (target.url,)
    return ("", target.command, *target.args) if isinstance(target, StdioTarget) else ("", target.label)
