"""Which era a configuration spoke last time, so that the next connection to it need not ask again.

A server may need both: it has tasks of its own or other extensions in 2026-07-28 only, and tools that can ask in the
handshake era only. Then the calls of these tools are remembered, and each is made in the era that it needs.
"""

from collections import OrderedDict

from emceepee.backends.link import ServerFacts
from emceepee.backends.spec import HttpTarget, Mode, StdioTarget, Target
from emceepee.clock import Clock

KEPT_SECONDS = 3600.0  # a server that learned the other era meanwhile is noticed after this long, or when it refuses
CORRECTED_SECONDS = 86_400.0  # one that cannot ask in 2026-07-28 costs a call each time that this is found out
MOST = 1000
MOST_CALLS = 100  # of one server, that are remembered to need the handshake era
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
        self._corrected: set[Key] = set()
        self._split: OrderedDict[Key, set[str]] = OrderedDict()  # servers that need both eras, and their asking calls

    def recall(self, target: Target) -> Mode | None:
        mode, until = self._known.get(_key(target), (None, 0.0))
        return mode if until > self._clock.monotonic() else None

    def learn(self, target: Target, facts: ServerFacts) -> None:
        """Learned again it is not kept for longer: one day it is asked again."""
        if self.recall(target) is not None:
            return
        mode: Mode = "2026-07-28" if facts.is_modern else "legacy"
        self._known[_key(target)] = (mode, self._clock.monotonic() + KEPT_SECONDS)
        if len(self._known) > MOST:
            self._corrected.discard(self._known.popitem(last=False)[0])

    def correct(self, target: Target) -> None:
        """It speaks 2026-07-28, but needs the handshake era."""
        self._known[_key(target)] = ("legacy", self._clock.monotonic() + CORRECTED_SECONDS)
        self._corrected.add(_key(target))

    def take_back(self, target: Target) -> bool:
        """It needs 2026-07-28 as well. Return False if nobody corrected it, so that it is in its own era."""
        key = _key(target)
        if key not in self._corrected:
            return False
        self._corrected.discard(key)
        self._known[key] = ("2026-07-28", self._clock.monotonic() + CORRECTED_SECONDS)
        self._split.setdefault(key, set())
        return True

    def forget(self, target: Target) -> None:
        key = _key(target)
        self._known.pop(key, None)
        self._corrected.discard(key)
        self._split.pop(key, None)

    def forget_correction(self, target: Target) -> None:
        """Forget it, if it is not what the server itself chose."""
        if _key(target) in self._corrected or _key(target) in self._split:
            self.forget(target)

    # Servers that need both.

    @property
    def is_any_split(self) -> bool:
        return bool(self._split)

    def is_split(self, target: Target) -> bool:
        return _key(target) in self._split

    def split(self, target: Target, call: str) -> None:
        """Remember that this call needs the handshake era, and others need 2026-07-28."""
        calls = self._split.setdefault(_key(target), set())
        if len(calls) < MOST_CALLS:
            calls.add(call)
        if len(self._split) > MOST:
            self._split.popitem(last=False)

    def asks(self, target: Target, call: str) -> bool:
        """Return whether this call needs the handshake era."""
        return call in self._split.get(_key(target), ())


def cannot_ask(words: str) -> bool:
    """Whether an error of a tool means that its server can only ask in the handshake era."""
    return any(said in words for said in _CANNOT_ASK)


def _key(target: Target) -> Key:
    if isinstance(target, HttpTarget):
        return (target.url,)
    return ("", target.command, *target.args) if isinstance(target, StdioTarget) else ("", target.label)
