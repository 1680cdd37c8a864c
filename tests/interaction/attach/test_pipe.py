"""The pipe between a caller and its daemon, inside the test process: pipes at one end, sockets at the other."""

import json
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from emceepee.daemon.daemon_connection import ANSWER_GROWTH, KEPT_BYTES, MOST_REPEATS
from emceepee.daemon.greeting import Welcome
from emceepee.daemon.launcher import Attached, NoDaemon
from emceepee.daemon.pipe import DaemonPipe
from emceepee.wire.codec import encode
from emceepee.wire.json_rpc import SHUTTING_DOWN, error_message
from emceepee.wire.protocol import INVALID_REQUEST

BOUND = 10.0
LONGEST_LINE = 100_000


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

    def wait_for_input(self) -> None:
        """Until something has come, which nobody reads."""
        assert select.select([self._end], [], [], BOUND)[0]

    def send(self, data: bytes) -> None:
        self._end.sendall(data)

    def say(self, line: bytes) -> None:
        self.send(line + b"\n")

    def answer(self, message: dict[str, Any]) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}).encode())

    def die(self) -> None:
        """At once, even with unread input."""
        self._lines.close()
        self._end.close()


class Caller:
    """Speaks through a pipe to one daemon after the other."""

    def __init__(self, daemons: list[Daemon]) -> None:
        self._input: int | None
        self._stdin, self._input = os.pipe()
        output, self._stdout = os.pipe()
        self._output = os.fdopen(output, "rb")
        self._daemons = daemons
        first = self._daemons.pop(0)
        self.pipe = DaemonPipe(first.attached, self._attach, stdin=self._stdin, stdout=self._stdout)
        self._running = threading.Thread(target=self.pipe.run, daemon=True)
        self._running.start()

    def _attach(self) -> Attached:
        if not self._daemons:
            raise NoDaemon("none is left")
        return self._daemons.pop(0).attached

    def say(self, **message: Any) -> None:
        assert self._input is not None
        os.write(self._input, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._output.readline())
        return message

    def end_input(self) -> None:
        if self._input is not None:
            os.close(self._input)
            self._input = None

    def close(self) -> None:
        self.end_input()
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


def test_the_pipe_forwards_lines_in_both_directions_and_drops_a_line_without_an_end() -> None:
    daemon = Daemon()
    with a_caller_of(daemon) as caller:
        caller.say(id=1, method="tools/list")
        daemon.answer(daemon.hear())
        assert caller.hear() == {"jsonrpc": "2.0", "id": 1, "result": {}}
        caller.say(id=2, method="tools/call")
        daemon.hear()
        daemon.send(b'{"jsonrpc":"2.0","id":2,"res')
        daemon.die()
        assert caller.hear()["error"]["message"].startswith("emceepee's daemon ended")


@pytest.mark.parametrize("has_id", [True, False])
def test_the_pipe_drops_an_answer_over_the_limit_and_returns_an_error_to_its_caller(
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


# A daemon is lost.

HANDSHAKE = ["initialize", "notifications/initialized"]
only_on_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere the kernel does not say what was not read"
)


def shake_hands(caller: Caller, daemon: Daemon) -> None:
    caller.say(id=0, method="initialize")
    daemon.answer(daemon.hear())
    assert caller.hear()["id"] == 0
    caller.say(method="notifications/initialized")
    assert daemon.hear()["method"] == "notifications/initialized"


def heard_by(daemon: Daemon) -> dict[str, Any]:
    """Return the messages after the repeated handshake."""
    assert [daemon.hear()["method"] for _ in HANDSHAKE] == HANDSHAKE
    return daemon.hear()


@only_on_linux
def test_the_pipe_sends_a_call_that_a_dead_daemon_never_read_to_the_next_daemon() -> None:
    one, two = Daemon(), Daemon()
    with a_caller_of(one, two) as caller:
        shake_hands(caller, one)
        caller.say(id=1, method="tools/call", params={"name": "execute_tool"})
        one.wait_for_input()
        one.die()
        found = heard_by(two)
        assert (found["id"], found["params"]) == (1, {"name": "execute_tool"})
        two.answer(found)
        assert caller.hear() == {"jsonrpc": "2.0", "id": 1, "result": {}}  # and not that of the handshake


def test_the_pipe_does_not_resend_a_call_that_a_daemon_read_before_it_died() -> None:
    one, two = Daemon(), Daemon()
    with a_caller_of(one, two) as caller:
        shake_hands(caller, one)
        caller.say(id=1, method="tools/call", params={"name": "execute_tool"})
        one.hear()
        one.die()
        lost = caller.hear()
        assert (lost["id"], lost["error"]["code"]) == (1, -32000)
        assert "may have executed it" in lost["error"]["message"]
        caller.say(id=2, method="ping")
        assert heard_by(two)["id"] == 2


@only_on_linux
def test_the_pipe_reports_a_possibly_read_call_as_lost_and_resends_an_unread_one() -> None:
    one, two = Daemon(), Daemon()
    with a_caller_of(one, two) as caller:
        shake_hands(caller, one)
        for key in (1, 2):
            caller.say(id=key, method="tools/call", params={"name": "execute_tool"})
            one.wait_for_input()
            if key == 1:
                one.hear()
        one.die()
        assert caller.hear()["id"] == 1
        found = heard_by(two)
        assert found["id"] == 2
        two.answer(found)
        assert caller.hear()["id"] == 2


@pytest.mark.parametrize(
    "message",
    [
        {"method": "tools/list"},
        {"method": "ping"},
        {"method": "resources/read", "params": {"uri": "x:y"}},
        {"method": "tools/call", "params": {"name": "list_servers"}},
    ],
)
def test_the_pipe_resends_a_read_only_request_even_if_the_dead_daemon_had_read_it(message: dict[str, Any]) -> None:
    one, two = Daemon(), Daemon()
    with a_caller_of(one, two) as caller:
        shake_hands(caller, one)
        caller.say(id=1, **message)
        one.hear()
        one.die()
        two.answer(heard_by(two))
        assert caller.hear() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_the_pipe_repeats_an_unanswered_handshake_with_the_next_daemon() -> None:
    one, two = Daemon(), Daemon()
    with a_caller_of(one, two) as caller:
        caller.say(id=0, method="initialize")
        one.hear()
        one.die()
        two.answer(two.hear())
        assert caller.hear() == {"jsonrpc": "2.0", "id": 0, "result": {}}


def test_the_pipe_stops_resending_a_request_that_kills_each_daemon() -> None:
    daemons = [Daemon() for _ in range(MOST_REPEATS + 2)]
    with a_caller_of(*daemons) as caller:
        shake_hands(caller, daemons[0])
        caller.say(id=1, method="tools/list")
        assert daemons[0].hear()["id"] == 1
        daemons[0].die()
        for daemon in daemons[1:-1]:
            assert heard_by(daemon)["id"] == 1
            daemon.die()
        assert "ended while" in caller.hear()["error"]["message"]
        caller.say(id=2, method="ping")
        assert heard_by(daemons[-1])["id"] == 2


def test_the_pipe_does_not_resend_a_canceled_request() -> None:
    one, two = Daemon(), Daemon()
    with a_caller_of(one, two) as caller:
        shake_hands(caller, one)
        caller.say(id=1, method="tools/list")
        caller.say(method="notifications/cancelled", params={"requestId": 1})
        for _ in range(2):
            one.hear()
        one.die()
        caller.say(id=2, method="ping")
        assert heard_by(two)["id"] == 2


def refuse(daemon: Daemon, message: dict[str, Any]) -> None:
    """As a daemon does that stops."""
    daemon.say(encode(error_message(message["id"], INVALID_REQUEST, SHUTTING_DOWN)))


def test_the_pipe_sends_a_call_that_a_stopping_daemon_refuses_to_the_next_daemon() -> None:
    one, two = Daemon(), Daemon()
    with a_caller_of(one, two) as caller:
        shake_hands(caller, one)
        caller.say(id=1, method="tools/call", params={"name": "execute_tool"})
        refuse(one, one.hear())
        one.die()
        two.answer(heard_by(two))
        assert caller.hear() == {"jsonrpc": "2.0", "id": 1, "result": {}}


def test_the_pipe_does_not_resend_a_refused_call_that_its_caller_canceled() -> None:
    one, two = Daemon(), Daemon()
    with a_caller_of(one, two) as caller:
        shake_hands(caller, one)
        caller.say(id=1, method="tools/call", params={"name": "execute_tool"})
        refuse(one, one.hear())
        one.say(b'{"jsonrpc":"2.0","method":"after"}')
        assert caller.hear()["method"] == "after"
        caller.say(method="notifications/cancelled", params={"requestId": 1})
        one.hear()
        one.die()
        caller.say(id=2, method="ping")
        assert heard_by(two)["id"] == 2


def test_the_pipe_passes_a_refusal_on_if_the_caller_waits_for_no_other_daemon() -> None:
    one = Daemon()
    with a_caller_of(one) as caller:
        shake_hands(caller, one)
        caller.say(id=1, method="tools/call", params={"name": "execute_tool"})
        refuse(one, one.hear())
        caller.end_input()
        assert one.hear() == {}
        one.die()
        assert caller.hear()["error"]["message"] == SHUTTING_DOWN


def test_the_pipe_does_not_keep_a_large_call_for_the_next_daemon() -> None:
    one = Daemon()
    with a_caller_of(one) as caller:
        shake_hands(caller, one)
        caller.say(id=1, method="tools/call", params={"name": "execute_tool", "arguments": "x" * KEPT_BYTES})
        refuse(one, one.hear())
        assert caller.hear()["error"]["message"] == SHUTTING_DOWN


def test_without_a_next_daemon_the_pipe_answers_unsent_requests_with_the_reason() -> None:
    one = Daemon()
    with a_caller_of(one) as caller:
        shake_hands(caller, one)
        caller.say(id=1, method="tools/list")
        one.hear()
        one.die()
        assert caller.hear()["error"]["message"].endswith("no daemon can be reached: none is left")
