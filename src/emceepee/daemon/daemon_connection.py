"""One connection to a daemon: the lines sent on it, and which of them are resent to the next daemon if this one is
lost.

sent ──▶ answered
  ├────▶ refused, as the daemon stops                sent again
  └────▶ lost ─┬▶ the daemon never read it all      sent again
               ├▶ it changes nothing (a list, …)    sent again
               └▶ anything else                     an error: it may have been executed
"""

import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from emceepee.daemon.json_rpc_lines import MessageId, answers_in, error_line, is_not_begun
from emceepee.wire.line_splitter import LineSplitter, TooLongLine

READ_BYTES = 1 << 18
ANSWER_GROWTH = 8  # times the longest line: an answer may contain a line twice, as text in JSON with its escapes
KEPT_BYTES = 64 << 10  # of a line that may change something, until it is answered
MOST_REPEATS = 2  # per line: a request that ends each daemon must not be repeated forever
TOO_LARGE = "The answer is larger than {most}, and was dropped. Ask for less, or read the result in parts."


@dataclass(frozen=True, slots=True, kw_only=True)
class SentLine:
    """A line that the caller sent."""

    line: bytes
    keys: tuple[MessageId, ...] = ()
    """The ids of the requests in it."""
    changes_nothing: bool = False
    repeats: int = 0

    def repeated(self) -> "SentLine":
        return replace(self, repeats=self.repeats + 1)


class Loss(NamedTuple):
    """The outcome of unanswered requests when their daemon is lost."""

    again: list[SentLine]
    lost: list[MessageId]


def settle_loss(waiting: Mapping[MessageId, SentLine | None], unread: SentLine | None) -> Loss:
    """Decide which requests to repeat. `waiting` has no line for large requests. The daemon did not read `unread`."""
    again: list[SentLine] = []
    lost: list[MessageId] = []
    for key, sent in waiting.items():
        is_unread = unread is not None and key in unread.keys
        found = unread if is_unread else sent
        if found is None or not (is_unread or found.changes_nothing) or not _is_repeatable(found, waiting):
            lost.append(key)
        elif found not in again:
            again.append(found)
    return Loss(again, lost)


def _is_repeatable(sent: SentLine, waiting: Mapping[MessageId, SentLine | None]) -> bool:
    """Return whether a line may be sent again. The rest of a partly answered batch cannot be sent alone."""
    return sent.repeats < MOST_REPEATS and all(key in waiting for key in sent.keys)


class DaemonConnectionOwner(Protocol):
    """The owner of a daemon connection. Any thread may call its methods."""

    def write(self, line: bytes) -> None:
        """Write a line to the caller."""
        ...

    def answered(self, keys: list[MessageId]) -> None: ...

    def lose(self, loss: Loss) -> None:
        """Record lost requests. Returns at once."""
        ...

    def resume(self) -> None:
        """Repeat the lost requests that may be sent again."""
        ...


class DaemonConnection:
    """Only one thread at a time may call `send` and `close`."""

    def __init__(self, connection: socket.socket, owner: DaemonConnectionOwner, longest_answer: int) -> None:
        self._connection, self._owner, self._longest = connection, owner, longest_answer
        self._lock = threading.Lock()
        self._waiting: dict[MessageId, SentLine | None] = {}
        self._last: SentLine | None = None  # until it is answered
        self._refused: list[tuple[SentLine, bytes]] = []  # requests that a stopping daemon refused, with its answers
        self._unheard: MessageId | None = None  # the repeated request whose answer the caller must not receive again
        self._is_sending = self._is_finishing = self._was_reset = False
        self._is_read_out = False  # no more answers arrive
        self._settled = threading.Event()
        self.is_lost = False
        self._reader = threading.Thread(target=self._read, name="daemon", daemon=True)
        self._reader.start()

    def send(self, sent: SentLine, *, unheard: MessageId | None = None) -> bool:
        """Send a line. Return whether it is settled; if not, it may go to the next daemon."""
        with self._lock:
            if self.is_lost:
                return False
            self._last, self._is_sending = sent, True
            for key in sent.keys:
                self._waiting[key] = sent if sent.changes_nothing or len(sent.line) <= KEPT_BYTES else None
            if unheard is not None:
                self._unheard = unheard
        is_written = False
        with suppress(OSError):
            self._connection.sendall(sent.line + b"\n")
            is_written = True
        with self._lock:
            self._is_sending = False
            if not is_written:
                self.is_lost = True
            elif not self._is_read_out:
                return True
            # Lost: the reader has left these requests to this method. A partially sent line does not count as complete.
            waiting = {key: self._waiting.pop(key) for key in sent.keys if key in self._waiting}
            is_certain = not is_written or self._was_reset
            self._last = None
        if not waiting:
            return bool(sent.keys) or is_written
        loss = settle_loss(waiting, sent if is_certain else None)
        if loss.lost:
            self._owner.lose(Loss([], loss.lost))
        return not loss.again

    def forget(self, key: MessageId) -> None:
        """Forget a request that its caller has canceled."""
        with self._lock:
            self._waiting.pop(key, None)
            self._refused = [pair for pair in self._refused if key not in pair[0].keys]

    def wait_until_settled(self, within: float) -> None:
        """Wait until all answers of a lost daemon are forwarded, and the owner has the remaining requests."""
        self._settled.wait(within)

    def finish(self, *, within: float) -> None:
        self._is_finishing = True
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)
        self._reader.join(within)
        if not self._reader.is_alive():
            self.close()

    def close(self) -> None:
        self._connection.close()

    def _read(self) -> None:
        splitter = LineSplitter(self._longest)
        try:
            while data := self._connection.recv(READ_BYTES):
                for line in splitter.feed(data):  # an incomplete line is dropped
                    self._pass_on(line)
        except ConnectionResetError:  # on Linux: the daemon closed its end with unread data
            self._was_reset = True
        except OSError:
            pass
        self._settle()
        self._owner.resume()

    def _settle(self) -> None:
        with self._lock:
            self.is_lost = True
            waiting, self._waiting, last = self._waiting, {}, self._last
            if self._is_sending and last is not None:  # `send` handles these requests
                self._waiting = {key: waiting.pop(key) for key in last.keys if key in waiting}
                last = None
            self._is_read_out = True
        if self._is_finishing:
            for _, answer in self._refused:
                self._owner.write(answer + b"\n")
        else:
            loss = settle_loss(waiting, last if self._was_reset else None)
            loss = Loss([*(sent for sent, _ in self._refused), *loss.again], loss.lost)
            starting = "it is started again" if loss.again else "the next request starts it again"
            sys.stderr.write(f"emceepee: the daemon has ended; {starting}\n")
            self._owner.lose(loss)
        self._settled.set()

    def _pass_on(self, line: bytes | TooLongLine) -> None:
        if isinstance(line, TooLongLine):
            most = f"{self._longest >> 20} MiB"
            sys.stderr.write(f"emceepee: the daemon wrote a line of more than {most}, which was dropped\n")
            if line.message_id is None or not line.is_an_answer:
                return
            line = error_line(line.message_id, TOO_LARGE.format(most=most)).rstrip()
        keys = answers_in(line)
        with self._lock:
            if self._unheard is not None and self._unheard in keys:
                self._unheard = None
                return
            found = [self._waiting.pop(key, None) for key in keys]
            if self._last is not None and not self._is_sending and not self._waiting.keys() & self._last.keys:
                self._last = None
        if is_not_begun(line) and found[0] is not None and len(found[0].keys) == 1 and found[0].repeats < MOST_REPEATS:
            with self._lock:
                self._refused.append((found[0], line))  # for the next daemon, once this one has ended
            return
        self._owner.write(line + b"\n")
        if keys:
            self._owner.answered(keys)
