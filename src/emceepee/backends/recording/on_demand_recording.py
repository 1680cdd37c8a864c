"""A recording of one connection that a person starts and ends, to inspect its traffic or to report a problem."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from emceepee.errors import InvalidArguments

if TYPE_CHECKING:
    from emceepee.backends.recording.recorder import Recorder
    from emceepee.backends.recording.recordings import MemoryRecording


class OnDemandRecording:
    """The on-demand recording of a connection, one at a time.

    It is stored in memory. It ends with the connection, or when the person retrieves it.
    """

    def __init__(
        self,
        server: str,
        create: "Callable[[], MemoryRecording]",
        reconnect: Callable[[], Awaitable[object]],
        signal_change: Callable[[], None],
    ) -> None:
        """`create` may raise an EmceepeeError."""
        self._server, self._create, self._reconnect, self._signal_change = server, create, reconnect, signal_change
        self._recording: MemoryRecording | None = None

    @property
    def is_on(self) -> bool:
        return self._recording is not None

    @property
    def recorder(self) -> "Recorder | None":
        """The recorder for the next link, or None."""
        return None if self._recording is None else self._recording.recorder

    async def begin(self) -> None:
        """Start recording on a new link, so that the recording includes the handshake. Raises: EmceepeeError."""
        if self._recording is not None:
            raise InvalidArguments(f'"{self._server}" is being recorded already.')
        self._recording = self._create()
        try:
            await self._reconnect()
        except BaseException:
            self.drop()
            raise

    def end(self) -> str:
        """End the recording and return it, as JSON lines. Raises: InvalidArguments."""
        if self._recording is None:
            raise InvalidArguments(f'"{self._server}" is not being recorded.')
        text = self._recording.text
        self.drop()
        self._signal_change()
        return text

    def drop(self) -> None:
        """Discard the recording. A link that continues no longer holds its data."""
        if self._recording is not None:
            self._recording.recorder.stop()
            self._recording = None
