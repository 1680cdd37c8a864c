"""Delays answers to networks that send wrong secrets (brute force). It never locks a caller out."""

import hashlib
import ipaddress
from collections import OrderedDict
from dataclasses import dataclass

from emceepee.clock import Clock
from emceepee.telemetry.logs import EventLog

log = EventLog("guard")
FREE_TRIES = 5  # wrong secrets without a delay, because a caller may have an old token
SHORTEST, LONGEST = 0.05, 1.0  # seconds: the first delay, which doubles each time, and the maximum
FORGET_SECONDS = 60.0  # without a wrong secret, after which a network's failures are dropped
PROVEN_SECONDS = 600.0  # during which a correct secret is not delayed again
MOST_KEPT = 1000  # limit of networks and of secrets; beyond it, the oldest is dropped


@dataclass(slots=True)
class _Failures:
    count: int
    last: float


class LoginThrottle:
    """Counts failures per network. Without recent failures, it adds no delay."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, _Failures] = OrderedDict()  # by network, in the order of their last failure
        self._proven: OrderedDict[tuple[str, bytes], float] = OrderedDict()  # when the proof expires

    async def delay_failure(self, peer: str | None) -> None:
        """Record a wrong secret from this peer, and delay its answer."""
        now, network = self._clock.monotonic(), _network(peer)
        self._forget(now)
        failures = self._failures.pop(network, None) or _Failures(0, now)
        failures.count, failures.last = failures.count + 1, now
        self._failures[network] = failures
        if len(self._failures) > MOST_KEPT:
            self._failures.popitem(last=False)
        if failures.count == FREE_TRIES + 1:
            log.warning("wrong_secrets", peer=network, count=failures.count)
        await self._wait(failures)

    async def delay_success(self, peer: str | None, secret: bytes) -> None:
        """Delay a correct secret once if its network also sends wrong ones, so that timing does not reveal it."""
        if not self._failures:
            return
        now, network = self._clock.monotonic(), _network(peer)
        self._forget(now)
        if (failures := self._failures.get(network)) is None:
            return
        key = network, hashlib.sha256(secret).digest()
        if self._proven.get(key, now) <= now:
            await self._wait(failures)
            self._proven[key] = self._clock.monotonic() + PROVEN_SECONDS
            if len(self._proven) > MOST_KEPT:
                self._proven.popitem(last=False)

    async def _wait(self, failures: _Failures) -> None:
        if failures.count > FREE_TRIES:
            doubled = min(failures.count - FREE_TRIES - 1, 10)
            await self._clock.sleep(min(SHORTEST * 2**doubled, LONGEST))

    def _forget(self, now: float) -> None:
        while self._failures and next(iter(self._failures.values())).last + FORGET_SECONDS < now:
            self._failures.popitem(last=False)


def _network(peer: str | None) -> str:
    """Return the network of a peer. For IPv6 it is the /64, because one host can use all of its addresses."""
    try:
        address = ipaddress.ip_address(peer or "")
    except ValueError:
        return peer or "this machine"
    return str(ipaddress.ip_network(f"{address}/64", strict=False)) if address.version == 6 else str(address)
