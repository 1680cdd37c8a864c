"""What was recorded, in neither era's manner: requests, what the server said meanwhile, and how it ended."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from emceepee.replay.request_key import request_key
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A notification. `wait` is how many seconds after what came before."""

    wait: float
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedQuestions:
    """What the server asked at once; by keys that are its own."""

    wait: float
    asked: dict[str, JsonObject]  # method and params


Step: TypeAlias = Notice | RecordedQuestions


@dataclass(slots=True, kw_only=True)
class RecordedExchange:
    """A request and all that belongs to it. `line` is where it stands in the file."""

    line: int
    method: str
    params: JsonObject
    steps: list[Step] = field(default_factory=list)
    wait: float = 0.0
    result: JsonObject | None = None
    error: JsonObject | None = None
    later: list[Notice] = field(default_factory=list)  # what the server said of its own accord, until the next request


@dataclass(kw_only=True)
class Recording:
    """`hello` is what the server told of itself."""

    server: str
    hello: JsonObject
    exchanges: list[RecordedExchange]
    notes: list[str]  # what whoever replays it should know

    @cached_property
    def numbers_by_key(self) -> dict[str, list[int]]:
        """The numbers of equal requests' exchanges, in their order. Made once: conversations are many."""
        numbers: dict[str, list[int]] = {}
        for number, exchange in enumerate(self.exchanges):
            numbers.setdefault(request_key(exchange.method, exchange.params), []).append(number)
        return numbers
