"""Parser for untrusted recordings: bounded, with the line number in every error."""

from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

from emceepee.backends.recording.entries import HEADER_KEY, LONGEST_TEXT, VERSION, EntryKind, is_header
from emceepee.bounds.files import read_file
from emceepee.replay.recording import Notice, RecordedExchange, RecordedQuestions, Recording
from emceepee.replay.request_key import RoundKey, request_key, round_key
from emceepee.wire.codec import Unreadable, decode
from emceepee.wire.json_rpc import SERVER_ERROR
from emceepee.wire.json_types import JsonObject

MOST_BYTES = 128 << 20
MOST_LINES = 200_000
LONGEST_SECONDS = 1e9
LISTEN = "subscriptions/listen"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
_ENDINGS = (EntryKind.RESULT, EntryKind.ERROR, EntryKind.FAILED, EntryKind.CANCELLED)


class BadRecording(Exception):
    """The file is not a recording or cannot be read; the message names the place and the reason."""


class _BrokenLine(BadRecording):
    """A line that is not JSON. A truncated last line has no line end; a later recording appends one."""

    def __init__(self, words: str, number: int, line: bytes) -> None:
        super().__init__(words)
        self.number, self.is_whole = number, line.endswith(b"\n")


def read_recording(path: Path) -> Recording:
    """Raises: BadRecording."""
    try:
        data = read_file(path, MOST_BYTES, allows_pipe=True)
    except OSError as error:
        raise BadRecording(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        return parse_recording(BytesIO(data))
    except BadRecording as error:
        raise BadRecording(f"{path}: {error}") from None


def parse_recording(lines: Iterable[bytes]) -> Recording:
    """Raises: BadRecording."""
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        if number > MOST_LINES:
            raise BadRecording(f"has more than {MOST_LINES} lines, which is the most that are read")
        if line.strip():
            reader.number = number
            reader.read(line)
    return reader.finish()


class _Reader:
    def __init__(self) -> None:
        self.number = 0  # of the current line
        self._server: str | None = None
        self._hello: JsonObject | None = None
        self._exchanges: list[RecordedExchange] = []
        self._notes: list[str] = []
        self._open: dict[int, RecordedExchange] = {}
        self._listening: set[int] = set()
        self._asking: dict[tuple[str, RoundKey], RecordedExchange] = {}  # exchanges whose result asked for input
        self._questions: dict[str, RecordedExchange] = {}
        self._moments: dict[int, float] = {}  # time of the latest event per exchange, by its line
        self._latest: RecordedExchange | None = None  # the exchange that ended last
        self._has_gaps = False  # whether lines are missing
        self._broken: _BrokenLine | None = None  # possibly the last line of its recording

    def read(self, line: bytes) -> None:
        try:
            entry = self._decoded(line)
        except _BrokenLine as error:
            if self._server is None or self._broken is not None:
                raise self._broken or error from None
            self._broken = error
            return
        if self._broken is not None:
            if not is_header(entry):
                raise self._broken
            self._note_cut_off(self._broken)
        self._take(entry)

    def _note_cut_off(self, broken: "_BrokenLine") -> None:
        self._broken = None
        self._notes.append(f"line {broken.number}: the recording was cut off within it")

    def _decoded(self, line: bytes) -> JsonObject:
        try:
            value = decode(line)
        except (Unreadable, ValueError) as error:
            words = f"is not JSON: {str(error)[:LONGEST_TEXT]}"
            if self._server is None:
                words = "is not JSON; a recording is what `emceepee call --record` writes"
            raise _BrokenLine(f"line {self.number} {words}", self.number, line) from None
        if not isinstance(value, dict):
            raise self.wrong("is not a JSON object")
        return value

    def wrong(self, words: str) -> BadRecording:
        return BadRecording(f"line {self.number} {words}")

    def _take(self, entry: JsonObject) -> None:
        if is_header(entry):
            self._begin(entry)
        elif self._server is None:
            raise self.wrong(f'is not the first line of a recording, which has "{HEADER_KEY}"')
        else:
            self._take_entry(entry)

    def _begin(self, header: JsonObject) -> None:
        """Start the file's recording, or another recording appended to it."""
        if header[HEADER_KEY] != VERSION:
            version = str(header[HEADER_KEY])[:40]
            raise self.wrong(f"is of a recording of version {version}; this emceepee reads version {VERSION}")
        self._end_all("the recording ends before its answer")
        self._asking.clear()
        self._has_gaps = False
        if self._server is None:
            self._server = self._text(header, "server")

    def _take_entry(self, entry: JsonObject) -> None:
        match self._text(entry, "type"):
            case EntryKind.OPENED:
                self._hello = self._hello or self._object(entry, "server")
            case EntryKind.REQUEST:
                self._take_request(entry)
            case kind if kind in _ENDINGS:
                self._take_ending(entry, EntryKind(kind))
            case EntryKind.NOTIFICATION:
                self._take_notification(entry)
            case EntryKind.QUESTION:
                self._take_question(entry)
            case EntryKind.ANSWER:
                self._take_answer(entry)
            case EntryKind.CUT:
                self._has_gaps = True
                self._notes.append(f"line {self.number}: the recording was cut: {self._text(entry, 'reason')}")
            case _:
                pass  # closed connections, and entry types of later versions

    def _take_request(self, entry: JsonObject) -> None:
        key, method, params = self._id(entry), self._text(entry, "method"), self._object(entry, "params")
        if key in self._open:
            raise self.wrong(f"asks with the id {key}, which is in use")
        if method == LISTEN:
            self._listening.add(key)
            return
        exchange = RecordedExchange(line=self.number, method=method, params=params)
        if (again := round_key(params)) is not None:
            exchange = self._asking.pop((request_key(method, params), again), exchange)
        if exchange.line == self.number:
            self._exchanges.append(exchange)
        self._open[key] = exchange
        self._moments[exchange.line] = self._at(entry)

    def _take_ending(self, entry: JsonObject, kind: EntryKind) -> None:
        if "id" not in entry:
            return  # the error of a connection that could not be opened
        key = self._id(entry)
        if key in self._listening:
            self._listening.discard(key)
            return
        exchange = self._open.pop(key, None)
        if exchange is None and self._has_gaps:
            return
        if exchange is None:
            raise self.wrong(f"ends request {key}, which does not stand before it")
        exchange.wait = self._wait(entry, exchange)
        if kind is EntryKind.RESULT:
            self._take_result(exchange, self._object(entry, "result"))
        elif kind is EntryKind.ERROR:
            exchange.error = self._object(entry, "error")
        elif kind is EntryKind.FAILED:
            exchange.error = no_answer(self._text(entry, "reason"))
        else:
            exchange.error = no_answer("it was cancelled")
        self._latest = exchange

    def _take_result(self, exchange: RecordedExchange, result: JsonObject) -> None:
        """Add a result. A request for input does not end the exchange: the request is repeated with the answers."""
        if result.get("resultType") != "input_required":
            exchange.result = result
            return
        asked = result.get("inputRequests") or {}
        if not isinstance(asked, dict):
            raise self.wrong("has inputRequests that are no object")
        if asked:
            questions = {key: self._question(question) for key, question in asked.items()}
            exchange.steps.append(RecordedQuestions(wait=exchange.wait, asked=questions))
        exchange.error = no_answer("what the server asked was not answered")
        again = round_key({"requestState": result.get("requestState"), "inputResponses": {}})
        if again is not None:
            self._asking[request_key(exchange.method, exchange.params), again] = exchange

    def _take_notification(self, entry: JsonObject) -> None:
        method, params = self._text(entry, "method"), self._object(entry, "params")
        exchange = self._open.get(self._during(entry))
        if method == ACKNOWLEDGED:
            return
        if exchange is not None:
            wait = self._wait(entry, exchange)
            exchange.steps.append(Notice(wait=wait, method=method, params=params))
        elif self._latest is not None:
            wait = self._wait(entry, self._latest)
            self._latest.later.append(Notice(wait=wait, method=method, params=params))

    def _take_question(self, entry: JsonObject) -> None:
        """Add a question. A question outside of any request is not replayed, because no call could carry it."""
        exchange = self._open.get(self._during(entry))
        key, question = self._text(entry, "id"), self._question(entry)
        if exchange is not None:
            exchange.steps.append(RecordedQuestions(wait=self._wait(entry, exchange), asked={key: question}))
            self._questions[key] = exchange

    def _take_answer(self, entry: JsonObject) -> None:
        exchange = self._questions.pop(self._text(entry, "id"), None)
        if exchange is not None:
            self._wait(entry, exchange)

    def finish(self) -> Recording:
        if self._broken is not None:
            if self._broken.is_whole:
                raise self._broken
            self._note_cut_off(self._broken)
        if self._server is None:
            raise BadRecording("is empty; a recording is what `emceepee call --record` writes")
        if self._hello is None:
            raise BadRecording("has no line that says how the server was reached: no connection was recorded")
        self._end_all("the recording ends before its answer")
        return Recording(server=self._server, hello=self._hello, exchanges=self._exchanges, notes=self._notes)

    def _end_all(self, reason: str) -> None:
        for exchange in self._open.values():
            exchange.error = no_answer(reason)
        self._open.clear()
        self._listening.clear()
        self._questions.clear()

    # Parsers for the parts of an entry. Each method raises BadRecording.

    def _question(self, question: Any) -> JsonObject:
        if not isinstance(question, dict):
            raise self.wrong("has a question that is no object")
        return {"method": self._text(question, "method"), "params": self._object(question, "params")}

    def _text(self, entry: JsonObject, key: str) -> str:
        if not isinstance(value := entry.get(key), str):
            raise self.wrong(f'needs a text under "{key}"')
        return value

    def _object(self, entry: JsonObject, key: str) -> JsonObject:
        if not isinstance(value := entry.get(key), dict):
            raise self.wrong(f'needs an object under "{key}"')
        return value

    def _id(self, entry: JsonObject) -> int:
        if type(value := entry.get("id")) is not int:
            raise self.wrong('needs a whole number under "id"')
        return value

    def _during(self, entry: JsonObject) -> int:
        value = entry.get("during")
        return value if type(value) is int else 0

    def _at(self, entry: JsonObject) -> float:
        value = entry.get("at")
        if not isinstance(value, int | float) or not 0 <= value < LONGEST_SECONDS:
            raise self.wrong('needs a number of seconds under "at"')
        return float(value)

    def _wait(self, entry: JsonObject, exchange: RecordedExchange) -> float:
        """Return the time since the latest event of the exchange."""
        now = self._at(entry)
        before = self._moments.get(exchange.line, now)
        self._moments[exchange.line] = now
        return max(now - before, 0.0)


def no_answer(reason: str) -> JsonObject:
    """Return the error that replaces an answer missing from the recording."""
    return {"code": SERVER_ERROR, "message": f"When this was recorded, it got no answer: {reason[:LONGEST_TEXT]}"}
