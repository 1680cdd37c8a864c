"""Callers over stdio: one pipe, and as many requests on their way as there are callers.

All of it blocks: there is one reader and one writer, and nothing cheaper than a plain `read`.
"""

import json
import os
import re
import select
from time import perf_counter

import msgspec

from bench.load.sample import Sample, WrongAnswer
from bench.processes import Child
from bench.work import HELLO, INITIALIZED, Era, Json, numbered_request, request

BOUND = 90.0  # seconds that any one answer may take; a contestant that needs longer has failed
CHUNK = 96 << 10  # from 128 KB on, memory is mapped for each read, which takes longer than the reading
_TAIL = 4096  # the mark stands near the end of a line
_USUAL = re.compile(rb'\{"jsonrpc":"2\.0","id":(\d+)[,}]')


class _Numbered(msgspec.Struct):
    id: int | str | None = None


class StdioCallers:
    """The other end of a child's standard input and output."""

    def __init__(self, child: Child, era: Era) -> None:
        stdin, stdout = child.process.stdin, child.process.stdout
        assert stdin is not None
        assert stdout is not None
        self._child, self._era = child, era
        self._in, self._out = stdin.fileno(), stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._rest: list[bytes] = []
        self._number = 0

    def open(self) -> None:
        if self._era is Era.MODERN:
            self.ask("server/discover", {})
        else:
            self.ask("initialize", HELLO)
            self._write(INITIALIZED + b"\n")

    def ask(self, method: str, params: Json) -> Json:
        """The result. Raises: WrongAnswer."""
        self._number += 1
        self._write(request(self._number, method, params, self._era) + b"\n")
        while True:
            for line in self._lines():
                if _number_of(line) == self._number:
                    answer = json.loads(line)
                    if "result" not in answer:
                        raise WrongAnswer(f"{method}: {line[:300]!r}")
                    return dict(answer["result"])

    def call_for(self, seconds: float, callers: int, *, name: str, arguments: Json, mark: str) -> Sample:
        """With 0 seconds each calls once. Raises: WrongAnswer."""
        before, after = numbered_request("tools/call", {"name": name, "arguments": arguments}, self._era)
        after, sign = after + b"\n", mark.encode()
        asked: dict[int, float] = {}
        latencies: list[float] = []

        def ask(count: int) -> None:
            said = []
            for _ in range(count):
                self._number += 1
                said.append(before + b"%d" % self._number + after)
                asked[self._number] = perf_counter()
            self._write(b"".join(said))

        began = perf_counter()
        deadline = began + seconds
        ask(callers)
        while asked:
            answered = 0
            for line in self._lines():
                now = perf_counter()
                when = asked.pop(_number_of(line), None)
                if when is None:
                    continue  # something that the contestant says of its own accord
                if sign not in line[-_TAIL:]:
                    raise WrongAnswer(f"{line[:600]!r}")
                latencies.append(now - when)
                answered += 1
            if answered and perf_counter() < deadline:
                ask(answered)
        return Sample(seconds=perf_counter() - began, latencies=latencies)

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._in, left) :]

    def _lines(self) -> list[bytes]:
        """At least one whole line."""
        while True:
            if not self._poll.poll(BOUND * 1000):
                raise WrongAnswer(f"no answer within {BOUND:g} s: {self._child.last_words()}")
            chunk = os.read(self._out, CHUNK)
            if not chunk:
                raise WrongAnswer(f"it ended: {self._child.last_words()}")
            if b"\n" not in chunk:
                self._rest.append(chunk)
                continue
            *lines, rest = b"".join([*self._rest, chunk]).split(b"\n")
            self._rest = [rest] if rest else []
            return lines


def _number_of(line: bytes) -> int:
    usual = _USUAL.match(line)
    if usual is not None:
        return int(usual[1])
    number = msgspec.json.decode(line, type=_Numbered).id
    return number if isinstance(number, int) else -1
