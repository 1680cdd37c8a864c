"""Which faults come when: by chance, and the same ones again for the same seed."""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from support.faults.timeline import OF_STORE, STORE, FaultKind

PAUSE_SECONDS = (2.0, 15.0)
STORE_PAUSE_SECONDS = 5.0
DOWN_SECONDS = (0.0, 3.0)  # until what was killed or stopped is started again
START_SECONDS = 3.0  # about as long as a start takes on a busy machine
SOON, LATER = (0.5, 3.0), (6.0, 9.0)  # seconds to the next fault: they meet each other, but for quiet times
QUIET_SHARE = 0.3
WEIGHTS = {
    FaultKind.KILL: 4,
    FaultKind.PAUSE: 4,
    FaultKind.STOP: 4,
    FaultKind.STORE_KILL: 2,
    FaultKind.STORE_PAUSE: 2,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFault:
    """`at` seconds after the beginning; for `seconds` it is paused, or not there."""

    at: float
    kind: FaultKind
    target: int = STORE
    seconds: float


def random_schedule(seed: int, *, seconds: float, replicas: int, with_store: bool = True) -> list[PlannedFault]:
    """All are over by then, and at least one replica is always at work."""
    return list(_faults(random.Random(seed), seconds, replicas, with_store=with_store))


def _faults(chance: random.Random, seconds: float, replicas: int, *, with_store: bool) -> Iterator[PlannedFault]:
    busy = dict.fromkeys(range(replicas), 0.0) | {STORE: 0.0}
    kinds = [kind for kind, weight in WEIGHTS.items() for _ in range(weight) if with_store or kind not in OF_STORE]
    deck: list[FaultKind] = []  # so that each kind has its share, however short the time is
    now = chance.uniform(*SOON)
    while now < seconds - START_SECONDS:
        deck = deck or chance.sample(kinds, len(kinds))
        kind = deck.pop()
        lasts = min(_length(kind, chance), seconds - now - START_SECONDS)
        free = [number for number in range(replicas) if busy[number] <= now]
        target = STORE if kind in OF_STORE else chance.choice(free) if len(free) > min(1, replicas - 1) else None
        if target is not None and busy[target] <= now and lasts >= _least(kind):
            yield PlannedFault(at=now, kind=kind, target=target, seconds=lasts)
            busy[target] = now + lasts + START_SECONDS
        else:
            deck.insert(0, kind)
        now += chance.uniform(*(LATER if chance.random() < QUIET_SHARE else SOON))


def _length(kind: FaultKind, chance: random.Random) -> float:
    match kind:
        case FaultKind.PAUSE:
            return chance.uniform(*PAUSE_SECONDS)
        case FaultKind.STORE_PAUSE:
            return STORE_PAUSE_SECONDS
        case _:
            return chance.uniform(*DOWN_SECONDS)


def _least(kind: FaultKind) -> float:
    return {FaultKind.PAUSE: PAUSE_SECONDS[0], FaultKind.STORE_PAUSE: STORE_PAUSE_SECONDS}.get(kind, 0.0)
