"""The pipe: lines of the caller to the daemon, lines of the daemon to the caller, in a thread for each direction.

If the daemon is lost, whoever waits for an answer gets an error. The next line finds it again, or starts it: the
handshake is repeated without the caller, and the session, which the pipe gave its name, goes on.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from emceepee.attach.messages import INVALID_REQUEST, MessageId, answers_in, error_line, parse, requests_in
from emceepee.attach.starting import Attached, NoDaemon
from emceepee.framing import LineSplitter, TooLongLine
from emceepee.terminal_text import printable

READ_BYTES = 1 << 18
ANSWER_GROWTH = 8  # of the longest line: an answer may hold one twice, as text in JSON with its escapes
END_SECONDS = 5.0  # for the last answers, when the caller's input has ended
GONE = (
    "emceepee's daemon has ended while this request was under way; whether its call ran is not known. "
    "The session goes on with the next request."
)

TOO_LARGE = "The answer is larger than {most}, and was dropped. Ask for less, or read the result in parts."


class Pipe:
    """`run` until the caller's input ends."""

    def __init__(self, attached: Attached, attach: Callable[[], Attached], *, stdin: int, stdout: int) -> None:
        self._attach, self._stdin, self._stdout = attach, stdin, stdout
        self.longest_line = attached.welcome.longest_line
        self._splitter = LineSplitter(self.longest_line)
        self._writing = threading.Lock()
        self._handshake = Handshake()
        self._line: DaemonLine | None = self._open(attached)

    def run(self) -> None:
        while data := os.read(self._stdin, READ_BYTES):
            for line in self._splitter.feed(data):
                self._take(line)
        if rest := self._splitter.rest():
            self._take(rest)
        if self._line is not None:
            self._line.finish(within=END_SECONDS)

    def _take(self, line: bytes | TooLongLine) -> None:
        if isinstance(line, TooLongLine):
            self.write(error_line(line.message_id, "Invalid request: the line is too long", INVALID_REQUEST))
        elif line.strip():
            self._forward(line)

    def _forward(self, line: bytes) -> None:
        messages = parse(line)
        keys = requests_in(messages)
        if messages:  # before it is sent: the answer may be here at once
            self._handshake.note(messages[0].get("method"), line, keys)
        try:
            while True:
                if self._line is None or self._line.is_lost:
                    if self._line is not None:
                        self._line.close(within=END_SECONDS)
                    self._line = self._open(self._attach())
                if self._line.send(line, keys):
                    break
        except NoDaemon as error:
            sys.stderr.write(printable(f"emceepee: {error}\n"))
            for key in keys:
                self.write(error_line(key, f"emceepee's daemon is gone, and cannot be reached again: {error}"))

    def _open(self, attached: Attached) -> "DaemonLine":
        line = DaemonLine(attached.connection, self)
        self._handshake.repeat(line)
        return line

    def answered(self, keys: list[MessageId]) -> None:
        self._handshake.confirm(keys)

    def write(self, line: bytes) -> None:
        """To the caller. If it is gone, so are we."""
        with self._writing:
            view = memoryview(line)
            try:
                while view:
                    view = view[os.write(self._stdout, view) :]
            except OSError:
                os._exit(0)


class Handshake:
    """What the caller said first, for a daemon that did not hear it."""

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

    def repeat(self, line: "DaemonLine") -> None:
        if self._opening is not None and self._key is not None and self._is_answered:
            line.send(self._opening, [], unheard=self._key)
            if self._opened is not None:
                line.send(self._opened, [])


class DaemonLine:
    """One connection to a daemon, and who waits for an answer on it."""

    def __init__(self, connection: socket.socket, pipe: Pipe) -> None:
        self._connection, self._pipe = connection, pipe
        self._lock = threading.Lock()
        self._waiting: dict[MessageId, None] = {}
        self._unheard: MessageId | None = None  # an answer that the caller has had before
        self._is_finishing = False
        self.is_lost = False
        self._reader = threading.Thread(target=self._read, name="daemon", daemon=True)
        self._reader.start()

    def send(self, line: bytes, keys: list[MessageId], *, unheard: MessageId | None = None) -> bool:
        """False if it certainly did not reach the daemon, and may go to the next one."""
        with self._lock:
            if self.is_lost:
                return False
            self._waiting |= dict.fromkeys(keys)
            if unheard is not None:
                self._unheard = unheard
        try:
            self._connection.sendall(line + b"\n")
        except OSError:
            # Without its end, no line is taken for whole.
            with self._lock:
                was_told = any(key not in self._waiting for key in keys)
                for key in keys:
                    self._waiting.pop(key, None)
                self.is_lost = True
            return was_told
        return True

    def finish(self, *, within: float) -> None:
        self._is_finishing = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        self.close(within=within)

    def close(self, *, within: float) -> None:
        self._reader.join(within)
        self._connection.close()

    def _read(self) -> None:
        splitter = LineSplitter(ANSWER_GROWTH * self._pipe.longest_line)
        with suppress(OSError):  # a line without its end is dropped
            while data := self._connection.recv(READ_BYTES):
                for line in splitter.feed(data):
                    self._pass_on(line)
        with self._lock:
            self.is_lost = True
            lost, self._waiting = list(self._waiting), {}
        if not self._is_finishing:
            sys.stderr.write("emceepee: the daemon has ended; the next request starts it again\n")
            for key in lost:
                self._pipe.write(error_line(key, GONE))

    def _pass_on(self, line: bytes | TooLongLine) -> None:
        if isinstance(line, TooLongLine):
            most = f"{ANSWER_GROWTH * self._pipe.longest_line >> 20} MiB"
            sys.stderr.write(f"emceepee: the daemon wrote a line of more than {most}, which was dropped\n")
            if line.message_id is None or not line.is_an_answer:
                return
            line = error_line(line.message_id, TOO_LARGE.format(most=most)).rstrip()
        keys = answers_in(line)
        with self._lock:
            if self._unheard is not None and self._unheard in keys:
                self._unheard = None
                return
            for key in keys:
                self._waiting.pop(key, None)
        self._pipe.write(line + b"\n")
        if keys:
            self._pipe.answered(keys)
