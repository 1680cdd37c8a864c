"""The outcome of forwarded responses, as far as it has not been reported to their holder. Numbers only.

expected ──▶ written to the caller ──▶ read
    └────────────────┴────────────────▶ not read
"""

from typing import NamedTuple

MOST_PER_REQUEST = 32  # numbers of each kind that one request carries


class DeliveryReport(NamedTuple):
    """A report for a holder. Responses that were read were also written."""

    written: tuple[int, ...] = ()
    read: tuple[int, ...] = ()
    unread: tuple[int, ...] = ()


class UnreportedResponses:
    """The responses of one holder whose outcome is not reported yet, by the numbers of their requests."""

    def __init__(self) -> None:
        self._open: set[int] = set()  # the caller's connection will report these
        self._written: dict[int, None] = {}
        self._read: list[int] = []
        self._unread: list[int] = []

    def __repr__(self) -> str:
        counts = f"open={len(self._open)} written={len(self._written)} read={len(self._read)}"
        return f"<UnreportedResponses {counts} unread={len(self._unread)}>"

    @property
    def has_news(self) -> bool:
        return bool(self._written or self._read or self._unread)

    def expect(self, number: int) -> None:
        self._open.add(number)

    def mark_written(self, number: int) -> bool:
        """Mark a response as written. Return whether it was not marked before."""
        if number in self._open:
            self._written[number] = None
            return True
        return False

    def mark(self, number: int, *, was_read: bool) -> bool:
        """Mark whether a response was read. Return whether that is new: an aborted response may be reported twice."""
        if number not in self._open:
            return False
        self._open.discard(number)
        self._written.pop(number, None)
        (self._read if was_read else self._unread).append(number)
        return True

    def take_some(self) -> DeliveryReport:
        """Remove and return reports for the next request to carry."""
        if not self._read and not self._written:
            return NOTHING_TO_REPORT
        news = DeliveryReport(tuple(self._written)[:MOST_PER_REQUEST], tuple(self._read[:MOST_PER_REQUEST]))
        for number in news.written:
            del self._written[number]
        del self._read[:MOST_PER_REQUEST]
        return news

    def take_all(self) -> DeliveryReport:
        news = DeliveryReport(tuple(self._written), tuple(self._read), tuple(self._unread))
        self._written, self._read, self._unread = {}, [], []
        return news

    def put_back(self, news: DeliveryReport) -> None:
        """Restore reports that could not be delivered."""
        for number in news.written:
            self.mark_written(number)  # unless its final outcome is known by now
        self._read.extend(news.read)
        self._unread.extend(news.unread)


NOTHING_TO_REPORT = DeliveryReport()
