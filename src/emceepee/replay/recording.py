"""A recording, independent of the era: requests, messages of the server during them, and their outcomes."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from emceepee.replay.request_key import request_key
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification. `wait` is the number of seconds after the previous step."""

    wait: float
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedQuestions:
    """Questions that the server asked together, under the server's own keys."""

    wait: float
    asked: dict[str, JsonObject]  # method and params


Step: TypeAlias = Notice | RecordedQuestions


@dataclass(slots=True, kw_only=True)
class RecordedExchange:
    """A request with its steps and its outcome. `line` is its line in the file."""

    line: int
    method: str
    params: JsonObject
    steps: list[Step] = field(default_factory=list)
    wait: float = 0.0
    result: JsonObject | None = None
    error: JsonObject | None = None
    later: list[Notice] = field(default_factory=list)  # the server's unsolicited messages until the next request


@dataclass(kw_only=True)
class Recording:
    """A recording. `hello` is the server's description of itself."""

    server: str
    hello: JsonObject
    exchanges: list[RecordedExchange]
    notes: list[str]  # warnings for the person who replays it

    @cached_property
    def numbers_by_key(self) -> dict[str, list[int]]:
        """Return the indexes of equal requests' exchanges, in order. It is cached for all conversations."""
        numbers: dict[str, list[int]] = {}
        for number, exchange in enumerate(self.exchanges):
            numbers.setdefault(request_key(exchange.method, exchange.params), []).append(number)
        return numbers
