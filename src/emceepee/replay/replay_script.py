"""Chooses the recorded answer to a request: the next one to an equal request, and finally the last one repeatedly."""

from collections import Counter
from difflib import SequenceMatcher
from heapq import nlargest

from emceepee.backends.recording.recording_mask import masked_params
from emceepee.replay.recording import RecordedExchange, Recording
from emceepee.replay.request_key import canonical, request_key
from emceepee.wire.json_rpc import ProtocolError
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS, METHOD_NOT_FOUND

# Maximum number of requests that are compared to find the nearest. A close comparison blocks the event loop for
# milliseconds.
MOST_COMPARED, MOST_COMPARED_CLOSELY = 200, 5
LONGEST_COMPARED = 300  # characters
_NAMES = ("name", "uri", "ref")


class NotRecorded(ProtocolError):
    """The request is not in the recording; the message names the nearest recorded one."""


class ReplayScript:
    """The replay position of one client; `restart` resets it."""

    def __init__(self, recording: Recording) -> None:
        self._exchanges = recording.exchanges
        self._by_key = recording.numbers_by_key
        self._asked: Counter[str] = Counter()

    def restart(self) -> None:
        self._asked.clear()

    def next(self, method: str, params: JsonObject) -> int:
        """Return the index of the next exchange for the request. Raises: NotRecorded."""
        masked = masked_params(params)
        key = request_key(method, masked)
        found = self._by_key.get(key)
        if found is None:
            raise self._not_recorded(method, masked)
        index = found[min(self._asked[key], len(found) - 1)]
        self._asked[key] += 1
        return index

    def resume(self, index: int, method: str, params: JsonObject) -> RecordedExchange | None:
        """Return the exchange at this index, if the request repeats its request."""
        if not 0 <= index < len(self._exchanges):
            return None
        exchange = self._exchanges[index]
        same = request_key(method, masked_params(params)) == request_key(exchange.method, exchange.params)
        return exchange if same else None

    def exchange(self, index: int) -> RecordedExchange:
        return self._exchanges[index]

    def _not_recorded(self, method: str, params: JsonObject) -> NotRecorded:
        firsts = ((key, self._exchanges[found[0]]) for key, found in self._by_key.items())
        alike = {key: exchange for key, exchange in firsts if exchange.method == method}
        asked = shown(method, params)
        if not alike:
            methods = ", ".join(sorted({exchange.method for exchange in self._exchanges})) or "nothing"
            return NotRecorded(METHOD_NOT_FOUND, f"Not recorded: {asked}. The recording has: {methods}.")
        nearest = alike[_nearest(request_key(method, params), _of_same_name(params, alike))]
        there = shown(method, nearest.params)
        return NotRecorded(INVALID_PARAMS, f"Not recorded: {asked}. The nearest is {there}, line {nearest.line}.")


def _of_same_name(params: JsonObject, alike: dict[str, RecordedExchange]) -> list[str]:
    """Return the keys of requests for the same tool, resource, or prompt; all keys if none matches."""
    named = [(key, params[key]) for key in _NAMES if key in params]
    same = [key for key, other in alike.items() if any(other.params.get(name) == value for name, value in named)]
    return same or list(alike)


def _nearest(asked: str, keys: list[str]) -> str:
    """Return the most similar key."""
    matcher = SequenceMatcher(None, "", asked[:LONGEST_COMPARED], autojunk=False)

    def glance(key: str) -> float:
        matcher.set_seq1(key[:LONGEST_COMPARED])
        return matcher.quick_ratio()

    def look(key: str) -> float:
        matcher.set_seq1(key[:LONGEST_COMPARED])
        return matcher.ratio()

    return max(nlargest(MOST_COMPARED_CLOSELY, keys[:MOST_COMPARED], key=glance), key=look)


def shown(method: str, params: JsonObject) -> str:
    """Return a request on one line, cut to a limit."""
    kept = {key: value for key, value in params.items() if key not in ("_meta", "inputResponses", "requestState")}
    text = f"{method} {canonical(kept)}" if kept else method
    return text if len(text) <= LONGEST_COMPARED else f"{text[: LONGEST_COMPARED - 1]}…"
