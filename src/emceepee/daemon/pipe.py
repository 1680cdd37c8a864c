"""The pipe: passes lines from the caller to the daemon and back, with a thread for each direction.

If the daemon is lost, the next line finds or starts another one. The pipe repeats the handshake without the caller, and
the session continues, because the pipe gave it a name. Requests in flight are sent again if the lost daemon cannot have
executed them, or if they have no side effects. Other requests are answered with an error.
"""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable

from emceepee.daemon.daemon_connection import ANSWER_GROWTH, READ_BYTES, DaemonConnection, Loss, SentLine
from emceepee.daemon.json_rpc_lines import (
    INVALID_REQUEST,
    MessageId,
    canceled_in,
    change_nothing,
    error_line,
    parse,
    requests_in,
)
from emceepee.daemon.launcher import Attached, NoDaemon
from emceepee.terminal_text import printable
from emceepee.wire.line_splitter import LineSplitter, TooLongLine

END_SECONDS = 5.0  # for the last answers, after the caller's input or the daemon has ended
GONE = (
    "emceepee's daemon ended while this request was in flight, and may have executed it. Check its effect before "
    "you send it again. The session continues with the next request."
)


class DaemonPipe:
    """Call `run`, which returns when the caller's input ends."""

    def __init__(self, attached: Attached, attach: Callable[[], Attached], *, stdin: int, stdout: int) -> None:
        self._attach, self._stdin, self._stdout = attach, stdin, stdout
        self._longest_line = attached.welcome.longest_line
        self._splitter = LineSplitter(self._longest_line)
        self._writing = threading.Lock()
        self._turn = threading.Lock()  # held by the thread that writes to the daemon or finds the next one
        self._again: deque[SentLine] = deque()  # requests of lost daemons
        self._handshake = Handshake()
        self._line: DaemonConnection | None = self._open(attached)

    def run(self) -> None:
        while data := os.read(self._stdin, READ_BYTES):
            for line in self._splitter.feed(data):
                self._take(line)
        if rest := self._splitter.rest():
            self._take(rest)
        with self._turn:
            last = self._line
        if last is not None:
            last.finish(within=END_SECONDS)

    def _take(self, line: bytes | TooLongLine) -> None:
        if isinstance(line, TooLongLine):
            self.write(error_line(line.message_id, "Invalid request: the line is too long", INVALID_REQUEST))
        elif line.strip():
            self._forward(line)

    def _forward(self, line: bytes) -> None:
        messages = parse(line)
        keys = requests_in(messages)
        if messages:  # before sending: the answer may arrive at once
            self._handshake.note(messages[0].get("method"), line, keys)
        sent = SentLine(line=line, keys=tuple(keys), changes_nothing=change_nothing(messages))
        with self._turn:
            if self._line is not None:
                for key in canceled_in(messages):
                    self._line.forget(key)
            try:
                while not self._connected().send(sent):
                    sent = sent.repeated()
            except NoDaemon as error:
                self._refuse(sent, error)

    def _connected(self) -> DaemonConnection:
        """Return the connection to the daemon or its successor. Raises: NoDaemon."""
        while (line := self._line) is None or line.is_lost:
            if line is not None:
                line.wait_until_settled(END_SECONDS)
                line.close()
                self._line = None
            self._line = self._open(self._attach())
            self._send_again(self._line)
        return line

    def _open(self, attached: Attached) -> DaemonConnection:
        line = DaemonConnection(attached.connection, self, ANSWER_GROWTH * self._longest_line)
        self._handshake.repeat(line)
        return line

    def _send_again(self, line: DaemonConnection) -> None:
        while self._again:
            sent = self._again.popleft().repeated()
            if not line.send(sent):
                self._again.appendleft(sent)
                return

    def _refuse(self, sent: SentLine, error: NoDaemon) -> None:
        sys.stderr.write(printable(f"emceepee: {error}\n"))
        for key in sent.keys:
            self.write(error_line(key, f"emceepee's daemon has ended, and no daemon can be reached: {error}"))

    # Callbacks of a connection to a daemon (`DaemonConnectionOwner`).

    def lose(self, loss: Loss) -> None:
        for key in loss.lost:
            self.write(error_line(key, GONE))
        self._again.extend(loss.again)

    def resume(self) -> None:
        with self._turn:
            try:
                while self._again:
                    self._send_again(self._connected())
            except NoDaemon as error:
                while self._again:
                    self._refuse(self._again.popleft(), error)

    def answered(self, keys: list[MessageId]) -> None:
        self._handshake.confirm(keys)

    def write(self, line: bytes) -> None:
        """Write to the caller. If it is gone, exit."""
        with self._writing:
            view = memoryview(line)
            try:
                while view:
                    view = view[os.write(self._stdout, view) :]
            except OSError:
                os._exit(0)


class Handshake:
    """The caller's handshake, which is repeated for the next daemon."""

    def __init__(self) -> None:
        self._opening: bytes | None = None
        self._key: MessageId | None = None
        self._is_answered = False
        self._opened: bytes | None = None

    def note(self, method: object, line: bytes, keys: list[MessageId]) -> None:
        if method == "initialize" and keys:
            self._opening, self._key, self._is_answered, self._opened = line, keys[0], False, None
        elif method == "notifications/initialized":
            self._opened = line

    def confirm(self, keys: list[MessageId]) -> None:
        self._is_answered = self._is_answered or self._key in keys

    def repeat(self, line: DaemonConnection) -> None:
        if self._opening is not None and self._key is not None and self._is_answered:
            line.send(SentLine(line=self._opening), unheard=self._key)
            if self._opened is not None:
                line.send(SentLine(line=self._opened))
