"""What became of the responses that were passed back, as far as their holder has not been told yet. Numbers only."""

from collections.abc import Iterable

MOST_PER_REQUEST = 32  # numbers that ride on one request


class Unsettled:
    """Responses of one holder, by the numbers of their requests."""

    def __init__(self) -> None:
        self._open: set[int] = set()  # the caller's connection will tell
        self._read: list[int] = []
        self._unread: list[int] = []

    def __repr__(self) -> str:
        return f"<Unsettled open={len(self._open)} read={len(self._read)} unread={len(self._unread)}>"

    @property
    def has_news(self) -> bool:
        return bool(self._read or self._unread)

    def expect(self, number: int) -> None:
        self._open.add(number)

    def mark(self, number: int, *, was_read: bool) -> bool:
        """Whether that is news: of an aborted response one may hear twice."""
        if number not in self._open:
            return False
        self._open.discard(number)
        (self._read if was_read else self._unread).append(number)
        return True

    def take_some_read(self) -> tuple[int, ...]:
        """What may be told on the way."""
        if not self._read:
            return ()
        some = tuple(self._read[:MOST_PER_REQUEST])
        del self._read[:MOST_PER_REQUEST]
        return some

    def take_all(self) -> tuple[list[int], list[int]]:
        """Read, and not read."""
        taken = self._read, self._unread
        self._read, self._unread = [], []
        return taken

    def put_back(self, read: Iterable[int], unread: Iterable[int] = ()) -> None:
        """They could not be told."""
        self._read.extend(read)
        self._unread.extend(unread)
