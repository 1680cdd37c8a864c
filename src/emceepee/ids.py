"""ULIDs: 26 characters that sort by the time they were made, strictly increasing within one source. Request ids."""

import itertools
import secrets
from collections.abc import Callable, Iterator

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_RANDOM_BITS = 80
ULID_LENGTH = 26
_RANDOM_LIMIT = 1 << _RANDOM_BITS
_FIRST_NUMBERS = 1 << 30  # so that a billion requests fit into the 32 bits that some servers keep ids in


def request_numbers() -> Iterator[int]:
    """JSON-RPC ids of one link. They begin at random: an answer to someone else's request is not taken for ours."""
    return itertools.count(secrets.randbelow(_FIRST_NUMBERS) + 1)


class Ulids:
    """A source of ids. Two ids of the same millisecond differ by one, so their order is the order of their making."""

    def __init__(self, milliseconds: Callable[[], int]) -> None:
        self._milliseconds = milliseconds
        self._last_time = -1
        self._random = 0

    def new(self) -> str:
        now = self._milliseconds()
        if now > self._last_time:
            self._last_time = now
            self._random = secrets.randbits(_RANDOM_BITS - 1)  # the top bit is room to count up
        else:
            self._random += 1  # also when the wall clock was set back: ids never do
            if self._random >= _RANDOM_LIMIT:
                self._last_time, self._random = self._last_time + 1, 0
        return _crockford(self._last_time << _RANDOM_BITS | self._random)

    def continue_after(self, last: str) -> None:
        """Every id to come is greater than `last`, which another process made."""
        number = _number(last)
        moment = number >> _RANDOM_BITS
        if moment >= self._last_time:
            self._last_time, self._random = moment, number & (_RANDOM_LIMIT - 1)

    def unguessable(self) -> str:
        """An id that no other one tells anything of but its time: for what opens a door."""
        return _crockford(self._milliseconds() << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS))


def milliseconds_of(text: str) -> int | None:
    """Return when a ULID was made, in milliseconds since 1970; None if it is no ULID."""
    if len(text) != ULID_LENGTH or not set(text) <= set(_ALPHABET):
        return None
    return _number(text) >> _RANDOM_BITS


def _number(text: str) -> int:
    number = 0
    for character in text:
        number = number << 5 | _ALPHABET.index(character)
    return number


def _crockford(number: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in range(120, -1, -10)])
