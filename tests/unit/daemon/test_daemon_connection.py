"""Unanswered requests when the daemon is lost."""

import socket
import threading
from typing import Any

import pytest

from emceepee.daemon.daemon_connection import MOST_REPEATS, DaemonConnection, Loss, SentLine, settle_loss
from emceepee.daemon.json_rpc_lines import MessageId, canceled_in

CALL = SentLine(line=b"call", keys=(1,))
LIST = SentLine(line=b"list", keys=(2,), changes_nothing=True)
BATCH = SentLine(line=b"batch", keys=(3, "4"), changes_nothing=True)


def test_requests_without_effects_are_repeated_after_a_daemon_loss_and_others_are_lost() -> None:
    waiting: dict[MessageId, SentLine | None] = {1: CALL, 2: LIST, 3: BATCH, "4": BATCH}
    assert settle_loss(waiting, None) == Loss([LIST, BATCH], [1])


def test_a_call_that_the_lost_daemon_did_not_read_is_repeated() -> None:
    assert settle_loss({1: None, 5: None}, CALL) == Loss([CALL], [5])


def test_a_batch_with_some_responses_is_not_repeated() -> None:
    assert settle_loss({3: BATCH}, None) == Loss([], [3])


def test_no_request_is_repeated_forever() -> None:
    sent = LIST
    for _ in range(MOST_REPEATS):
        assert settle_loss({2: sent}, sent).again == [sent]
        sent = sent.repeated()
    assert settle_loss({2: sent}, sent) == Loss([], [2])


@pytest.mark.parametrize("params", [None, [], {}, {"requestId": None}, {"requestId": True}, {"requestId": [1]}])
def test_an_invalid_cancellation_names_no_request(params: Any) -> None:
    assert canceled_in([{"method": "notifications/cancelled", "params": params}]) == []


class FakeOwner:
    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.resumed = threading.Event()

    def write(self, line: bytes) -> None:
        pass

    def answered(self, keys: list[MessageId]) -> None:
        pass

    def lose(self, loss: Loss) -> None:
        self.losses.append(loss)

    def resume(self) -> None:
        self.resumed.set()


class DyingSocket:
    """A socket whose peer is gone at the time of a write, and whose reader notices it before the sender."""

    def __init__(self, owner: FakeOwner, *, takes: bool, was_read: bool) -> None:
        self._owner, self._takes, self._was_read = owner, takes, was_read
        self._dying = threading.Event()

    def sendall(self, data: bytes) -> None:
        self._dying.set()
        assert self._owner.resumed.wait(10)
        if not self._takes:
            raise BrokenPipeError

    def recv(self, size: int) -> bytes:
        assert self._dying.wait(10)
        if self._was_read:
            return b""
        raise ConnectionResetError


@pytest.mark.parametrize(
    ("takes", "was_read", "sent", "is_done"),
    [
        (False, True, CALL, False),
        (False, False, CALL, False),
        (True, False, CALL, False),
        (True, True, CALL, True),
        (True, True, LIST, False),
        (False, True, SentLine(line=b"notification"), False),
        (True, True, SentLine(line=b"notification"), True),
    ],
)
def test_a_request_written_while_its_daemon_dies_is_settled_once(
    takes: bool, was_read: bool, sent: SentLine, is_done: bool
) -> None:
    owner = FakeOwner()
    connection: Any = DyingSocket(owner, takes=takes, was_read=was_read)
    line = DaemonConnection(connection, owner, 1000)
    assert line.send(sent) is is_done
    is_lost = is_done and bool(sent.keys)
    assert [loss.lost for loss in owner.losses if loss.lost] == ([list(sent.keys)] if is_lost else [])
    assert [loss for loss in owner.losses if loss.again] == []  # the sender settles it
    assert not line.send(LIST)


def test_a_lost_daemon_connection_is_settled_before_it_reports_the_loss() -> None:
    owner = FakeOwner()
    ours, theirs = socket.socketpair()
    line = DaemonConnection(ours, owner, 1000)
    assert line.send(LIST)
    theirs.close()
    line.wait_until_settled(10)
    assert owner.losses == [Loss([LIST], [])]
    line.close()
