"""The pipe between a caller and its daemon, in the process of the test: two pipes at one end, sockets at the other."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from emceepee.attach.greeting import Welcome
from emceepee.attach.pipe import ANSWER_GROWTH, Pipe
from emceepee.attach.starting import Attached, NoDaemon

BOUND = 10.0
LONGEST_LINE = 1000


class Daemon:
    """One end of a connection, whose other end is the pipe's."""

    def __init__(self) -> None:
        self._end, theirs = socket.socketpair()
        self._end.settimeout(BOUND)
        self._lines = self._end.makefile("rb")
        self.attached = Attached(connection=theirs, welcome=Welcome(pid=1, longest_line=LONGEST_LINE))

    def hear(self) -> dict[str, Any]:
        """The next message; empty at the end."""
        line = self._lines.readline()
        message: dict[str, Any] = json.loads(line) if line else {}
        return message

    def say(self, line: bytes) -> None:
        self._end.sendall(line + b"\n")

    def answer(self, message: dict[str, Any]) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode())

    def die(self) -> None:
        """At once, whatever it has not read."""
        self._lines.close()
        self._end.close()


class Caller:
    """Speaks through a pipe to one daemon after the other."""

    def __init__(self, daemons: list[Daemon]) -> None:
        self._stdin, self._input = os.pipe()
        output, self._stdout = os.pipe()
        self._output = os.fdopen(output, "rb")
        self._daemons = daemons
        first = self._daemons.pop(0)
        self.pipe = Pipe(first.attached, self._attach, stdin=self._stdin, stdout=self._stdout)
        self._running = threading.Thread(target=self.pipe.run, daemon=True)
        self._running.start()

    def _attach(self) -> Attached:
        if not self._daemons:
            raise NoDaemon("none is left")
        return self._daemons.pop(0).attached

    def say(self, **message: Any) -> None:
        os.write(self._input, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._output.readline())
        return message

    def close(self) -> None:
        os.close(self._input)
        self._running.join(BOUND)
        assert not self._running.is_alive()
        self._output.close()
        os.close(self._stdin)
        os.close(self._stdout)


@contextmanager
def a_caller_of(*daemons: Daemon) -> Iterator[Caller]:
    caller = Caller(list(daemons))
    try:
        yield caller
    finally:
        for daemon in daemons:
            daemon.die()
        caller.close()


def test_lines_pass_in_both_directions_and_those_without_an_end_do_not() -> None:
    daemon = Daemon()
    with a_caller_of(daemon) as caller:
        caller.say(id=1, method="tools/list")
        daemon.answer(daemon.hear())
        assert caller.hear() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        caller.say(id=2, method="tools/call")
        daemon.hear()
        daemon._end.sendall(b'{"jsonrpc":"2.0","id":2,"res')
        daemon.die()
        assert caller.hear()["error"]["message"].startswith("emceepee's daemon has ended")


@pytest.mark.parametrize("has_id", [True, False])
def test_an_answer_over_the_limit_is_dropped_and_its_caller_told(
    has_id: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon = Daemon()
    with a_caller_of(daemon) as caller:
        caller.say(id="big", method="tools/call")
        daemon.hear()
        large = b"x" * (ANSWER_GROWTH * LONGEST_LINE + 1)
        daemon.say(b'{"jsonrpc":"2.0","id":"big","result":"%b"}' % large if has_id else large)
        daemon.say(b'{"jsonrpc":"2.0","method":"after"}')
        if has_id:
            refused = caller.hear()
            assert (refused["id"], refused["error"]["message"][:20]) == ("big", "The answer is larger")
        assert caller.hear()["method"] == "after"
    assert "a line of more than" in capsys.readouterr().err
