"""Slows down whoever brings wrong secrets, by where it comes from. It locks nobody out."""

import hashlib
import ipaddress
from collections import OrderedDict
from dataclasses import dataclass

from emceepee.clock import Clock
from emceepee.telemetry.logs import EventLog

log = EventLog("guard")
FREE_TRIES = 5  # anyone may have an old token
SHORTEST, LONGEST = 0.05, 1.0  # seconds: the first wait, which doubles, and the longest
FORGET_SECONDS = 60.0  # without a wrong one
PROVEN_SECONDS = 600.0  # for which a secret that was right is not made to wait again
MOST_KEPT = 1000  # places and secrets; then the oldest is forgotten


@dataclass(slots=True)
class _Trouble:
    failures: int
    last: float


class LoginThrottle:
    """Costs nothing as long as nobody fails."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._troubles: OrderedDict[str, _Trouble] = OrderedDict()  # by place, in the order of their last failure
        self._proven: OrderedDict[tuple[str, bytes], float] = OrderedDict()  # until when

    async def failed(self, peer: str | None) -> None:
        """A wrong secret came from there: its answer waits."""
        now, place = self._clock.monotonic(), _place(peer)
        self._forget(now)
        trouble = self._troubles.pop(place, None) or _Trouble(0, now)
        trouble.failures, trouble.last = trouble.failures + 1, now
        self._troubles[place] = trouble
        if len(self._troubles) > MOST_KEPT:
            self._troubles.popitem(last=False)
        if trouble.failures == FREE_TRIES + 1:
            log.warning("wrong_secrets", peer=place, count=trouble.failures)
        await self._wait(trouble)

    async def succeeded(self, peer: str | None, secret: bytes) -> None:
        """A right one waits too, once, where wrong ones come from: else its quick answer would tell it from them."""
        if not self._troubles:
            return
        now, place = self._clock.monotonic(), _place(peer)
        self._forget(now)
        if (trouble := self._troubles.get(place)) is None:
            return
        key = place, hashlib.sha256(secret).digest()
        if self._proven.get(key, now) <= now:
            await self._wait(trouble)
            self._proven[key] = self._clock.monotonic() + PROVEN_SECONDS
            if len(self._proven) > MOST_KEPT:
                self._proven.popitem(last=False)

    async def _wait(self, trouble: _Trouble) -> None:
        if trouble.failures > FREE_TRIES:
            doubled = min(trouble.failures - FREE_TRIES - 1, 10)
            await self._clock.sleep(min(SHORTEST * 2**doubled, LONGEST))

    def _forget(self, now: float) -> None:
        while self._troubles and next(iter(self._troubles.values())).last + FORGET_SECONDS < now:
            self._troubles.popitem(last=False)


def _place(peer: str | None) -> str:
    """Whoever has one IPv6 address has all of its network."""
    try:
        address = ipaddress.ip_address(peer or "")
    except ValueError:
        return peer or "this machine"
    return str(ipaddress.ip_network(f"{address}/64", strict=False)) if address.version == 6 else str(address)
