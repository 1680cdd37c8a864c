"""The recording of one connection that a person begins and ends, to see what passes or to report it."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from emceepee.errors import InvalidArguments

if TYPE_CHECKING:
    from emceepee.backends.recording.recorder import Recorder
    from emceepee.backends.recording.recordings import MemoryRecording


class OnDemandRecording:
    """One at a time. It is kept in memory, and ends with its connection, or when the person has it."""

    def __init__(
        self,
        server: str,
        create: "Callable[[], MemoryRecording]",
        reconnect: Callable[[], Awaitable[object]],
        signal_change: Callable[[], None],
    ) -> None:
        """`create` may refuse with an EmceepeeError."""
        self._server, self._create, self._reconnect, self._signal_change = server, create, reconnect, signal_change
        self._recording: MemoryRecording | None = None

    @property
    def is_on(self) -> bool:
        return self._recording is not None

    @property
    def recorder(self) -> "Recorder | None":
        """To whom the next link tells what passes."""
        return None if self._recording is None else self._recording.recorder

    async def begin(self) -> None:
        """On a fresh link, so that what is said at the beginning is in it. Raises: EmceepeeError."""
        if self._recording is not None:
            raise InvalidArguments(f'"{self._server}" is being recorded already.')
        self._recording = self._create()
        try:
            await self._reconnect()
        except BaseException:
            self.drop()
            raise

    def end(self) -> str:
        """What was recorded, as lines of JSON. Raises: InvalidArguments."""
        if self._recording is None:
            raise InvalidArguments(f'"{self._server}" is not being recorded.')
        text = self._recording.text
        self.drop()
        self._signal_change()
        return text

    def drop(self) -> None:
        """Nobody wants it any more; a link that goes on keeps nothing of it."""
        if self._recording is not None:
            self._recording.recorder.stop()
            self._recording = None
