"""Identifiers: ULIDs of 26 characters that sort by creation time, strictly increasing per source; and request ids."""

import itertools
import secrets
from collections.abc import Callable, Iterator

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [a + b for a in _ALPHABET for b in _ALPHABET]
_RANDOM_BITS = 80
ULID_LENGTH = 26
_RANDOM_LIMIT = 1 << _RANDOM_BITS
_FIRST_NUMBERS = 1 << 30  # leaves room for a billion requests in 32 bits, because some servers store ids in 32 bits


def request_numbers() -> Iterator[int]:
    """Yield the JSON-RPC ids of one link from a random start, so that answers to other clients match none of ours."""
    return itertools.count(secrets.randbelow(_FIRST_NUMBERS) + 1)


class Ulids:
    """A source of ids. Two ids of the same millisecond differ by one, so they sort in order of creation."""

    def __init__(self, milliseconds: Callable[[], int]) -> None:
        self._milliseconds = milliseconds
        self._last_time = -1
        self._random = 0

    def new(self) -> str:
        now = self._milliseconds()
        if now > self._last_time:
            self._last_time = now
            self._random = secrets.randbits(_RANDOM_BITS - 1)  # the clear top bit leaves room to count up
        else:
            self._random += 1  # also if the wall clock was set back: ids always increase
            if self._random >= _RANDOM_LIMIT:
                self._last_time, self._random = self._last_time + 1, 0
        return _crockford(self._last_time << _RANDOM_BITS | self._random)

    def continue_after(self, last: str) -> None:
        """Make every later id greater than `last`, which another process created."""
        number = _number(last)
        moment = number >> _RANDOM_BITS
        if moment >= self._last_time:
            self._last_time, self._random = moment, number & (_RANDOM_LIMIT - 1)

    def unguessable(self) -> str:
        """Return an id that can serve as a credential: other ids reveal nothing about it except its creation time."""
        return _crockford(self._milliseconds() << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS))


def milliseconds_of(text: str) -> int | None:
    """Return the creation time of a ULID in milliseconds since 1970, or None if the text is no ULID."""
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
