"""The streams of one handshake-era connection: the messages written to each, and its current reader."""

from collections.abc import AsyncIterator, Callable
from functools import partial

from emceepee.clock import Clock, milliseconds
from emceepee.ids import Ulids
from emceepee.lifecycle import TaskOwner
from emceepee.server.http.replay.message_log import PUSH, Gap, MessageLog, MessageRecords
from emceepee.server.http.replay.message_stream import Kept
from emceepee.state.limits import Limits
from emceepee.web.asgi import CallerConnection, Header, Receive, Send
from emceepee.web.streams import PING, EventStreamWriter, Frames, event_parts
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

RETRY_MS = 1000  # the delay before a caller reconnects to a cut stream
Position = tuple[str, int]  # a stream, and the number of the message after which to read


class Replay:
    """A stream has one reader at a time. A reconnecting client replaces the previous reader, whose connection may be
    half-open.

        POST ──▶ open ─ id 1 ─ id 2 ──✂              reader 1: stopped, or `on_loss` reports its loss
        backend           ──────────── id 3 ─ final  the log continues; nothing is lost without a reader
        GET, Last-Event-ID: 2 ─▶ find ─▶ read ─ id 3 ─ final   reader 2: replay and live are one list

    Messages that belong to no request (`push`) form one more stream, PUSH, which never ends. A GET without
    Last-Event-ID reads it from where its last reader stopped.
    """

    def __init__(
        self,
        clock: Clock,
        limits: Limits,
        tasks: TaskOwner,
        records: MessageRecords | None = None,
        *,
        on_pushed: Callable[[], None] | None = None,
    ) -> None:
        """`on_pushed` is called when `pushed` was updated."""
        self.log = MessageLog(clock, Ulids(lambda: milliseconds(clock.now())), limits, records)
        self._tasks = tasks
        self._readers: dict[str, EventStreamWriter] = {}
        self._on_loss: dict[str, Callable[[], None]] = {}  # per stream
        self._on_pushed = on_pushed
        self.pushed = 0  # the number of the last push that a reader took

    def __repr__(self) -> str:
        live = [stream or "push" for stream in self._readers if self.is_read(stream)]
        return f"<Replay messages={self.log.last_number} readers={live}>"

    def is_read(self, stream: str) -> bool:
        reader = self._readers.get(stream)
        return reader is not None and reader.is_live

    def reader(self, stream: str) -> EventStreamWriter | None:
        return self._readers.get(stream)

    def push(self, message: JsonObject) -> None:
        """Send a message that belongs to no request."""
        self.log.append(PUSH, encode(message))

    def find(self, event_id: str) -> Position | None:
        """Return the position from which a caller resumes with this id."""
        return self.log.position(event_id)

    def open(
        self,
        stream: str,
        after: int,
        send: Send,
        receive: Receive,
        header: Header,
        *,
        connection: CallerConnection | None = None,
        on_loss: Callable[[], None] | None = None,
    ) -> EventStreamWriter:
        """Write a stream from the message after `after`, and stop its previous reader.

        `on_loss` is called whenever the stream's reader has disconnected, also after another one has resumed the
        stream, until `end_loss_reports`.
        """
        self.stop_reader(stream)
        if on_loss is not None:
            self._on_loss[stream] = on_loss
        entries = self._follow_pushes(after) if stream == PUSH else self.log.follow(stream, after)
        frames, on_gone = kept_frames(entries), partial(self._report_loss, stream)
        writing = EventStreamWriter(
            send, receive, frames, tasks=self._tasks, headers=(header,), on_gone=on_gone, connection=connection
        )
        self._readers[stream] = writing
        self.log.hold(stream)  # before the writer's first step, which runs a turn later
        writing.when_ended(partial(self.log.release, stream))
        return writing

    async def read(
        self,
        found: Position | None,
        send: Send,
        receive: Receive,
        header: Header,
        *,
        connection: CallerConnection | None = None,
    ) -> None:
        """Replay and follow a stream from the found position, or the push stream if `found` is None."""
        stream, after = (PUSH, self.pushed) if found is None else found
        writing = self.open(stream, after, send, receive, header, connection=connection)
        try:
            await writing.wait_until_finished()
        finally:
            self.remove_reader(stream, writing)

    def remove_reader(self, stream: str, writing: EventStreamWriter) -> None:
        """Remove a finished reader, unless another has replaced it."""
        if self._readers.get(stream) is writing:
            del self._readers[stream]

    def stop_reader(self, stream: str) -> None:
        if (reader := self._readers.get(stream)) is not None:
            reader.stop()

    def end_loss_reports(self, stream: str) -> None:
        """Report no further loss of a reader: the stream is complete."""
        self._on_loss.pop(stream, None)

    def _report_loss(self, stream: str) -> None:
        if (report := self._on_loss.get(stream)) is not None:
            report()

    async def _follow_pushes(self, after: int) -> AsyncIterator[Kept | Gap | None]:
        async for entry in self.log.follow(PUSH, after):
            yield entry
            if isinstance(entry, Kept):
                self.pushed = max(self.pushed, entry.number)
                if self._on_pushed is not None:
                    self._on_pushed()


async def kept_frames(entries: AsyncIterator[Kept | Gap | None]) -> Frames:
    """Yield the messages of a log as frames, each with the event id to resume from."""
    async for entry in entries:
        if entry is None:
            yield PING
        elif isinstance(entry, Gap):
            yield b": %d messages were left out, because they were not read in time\n\n" % entry.count
        elif entry.data:
            for part in event_parts(b"id: %s\nevent: message\ndata: " % entry.sent_id.encode(), entry.data):
                yield part
        else:
            yield b"id: %s\nretry: %d\ndata: \n\n" % (entry.sent_id.encode(), RETRY_MS)
