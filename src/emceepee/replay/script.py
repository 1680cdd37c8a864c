"""Which recorded answer a request gets: the next one to an equal request, and the last one again and again."""

from collections import Counter
from difflib import SequenceMatcher

from emceepee.backends.recording.masking import masked_params
from emceepee.json_types import JsonObject
from emceepee.protocol import INVALID_PARAMS, METHOD_NOT_FOUND
from emceepee.replay.recording import Exchange, Recording
from emceepee.replay.request_key import canonical, request_key

MOST_COMPARED = 500  # requests, to name the nearest
LONGEST_COMPARED = 300  # characters
_NAMES = ("name", "uri", "ref")


class NotRecorded(Exception):
    """The text says what was recorded instead."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Script:
    """The order is that of one client; `restart` begins anew."""

    def __init__(self, recording: Recording) -> None:
        self._exchanges = recording.exchanges
        self._by_key: dict[str, list[int]] = {}
        for index, exchange in enumerate(recording.exchanges):
            self._by_key.setdefault(request_key(exchange.method, exchange.params), []).append(index)
        self._asked: Counter[str] = Counter()

    def restart(self) -> None:
        self._asked.clear()

    def next(self, method: str, params: JsonObject) -> int:
        """The number of the exchange that is next. Raises: NotRecorded."""
        masked = masked_params(params)
        key = request_key(method, masked)
        found = self._by_key.get(key)
        if found is None:
            raise self._not_recorded(method, masked)
        index = found[min(self._asked[key], len(found) - 1)]
        self._asked[key] += 1
        return index

    def resume(self, index: int, method: str, params: JsonObject) -> Exchange | None:
        """The exchange of that number, if the request is one that comes back to it."""
        if not 0 <= index < len(self._exchanges):
            return None
        exchange = self._exchanges[index]
        same = request_key(method, masked_params(params)) == request_key(exchange.method, exchange.params)
        return exchange if same else None

    def exchange(self, index: int) -> Exchange:
        return self._exchanges[index]

    def _not_recorded(self, method: str, params: JsonObject) -> NotRecorded:
        alike = [exchange for exchange in self._exchanges if exchange.method == method]
        asked = shown(method, params)
        if not alike:
            methods = ", ".join(sorted({exchange.method for exchange in self._exchanges})) or "nothing"
            return NotRecorded(METHOD_NOT_FOUND, f"Not recorded: {asked}. The recording has: {methods}.")
        nearest = max(alike[:MOST_COMPARED], key=lambda exchange: _likeness(params, exchange.params))
        there = shown(method, nearest.params)
        return NotRecorded(INVALID_PARAMS, f"Not recorded: {asked}. The nearest is {there}, line {nearest.line}.")


def _likeness(one: JsonObject, other: JsonObject) -> tuple[bool, float]:
    """The same tool, resource or prompt first, then what is written alike."""
    first, second = (canonical(params)[:LONGEST_COMPARED] for params in (one, other))
    same = any(key in one and one.get(key) == other.get(key) for key in _NAMES)
    return same, SequenceMatcher(None, first, second, autojunk=False).ratio()


def shown(method: str, params: JsonObject) -> str:
    """A request on one line, not too long."""
    kept = {key: value for key, value in params.items() if key not in ("_meta", "inputResponses", "requestState")}
    text = f"{method} {canonical(kept)}" if kept else method
    return text if len(text) <= LONGEST_COMPARED else f"{text[: LONGEST_COMPARED - 1]}…"
