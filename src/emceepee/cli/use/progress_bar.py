"""A progress bar for long calls on a terminal."""

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from emceepee.terminal_text import printable
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

LONGEST_WORDS = 60


class ProgressBar:
    """Appears with the server's first progress notification, and disappears after the call. Off without a terminal."""

    def __init__(self, title: str, *, is_on: bool) -> None:
        self._title, self._is_on = title, is_on and sys.stderr.isatty()
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "ProgressBar":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.hide()

    def show(self, progress: JsonObject) -> None:
        if not self._is_on:
            return
        if self._bar is None or self._task is None:
            self._bar = _new_bar()
            self._task = self._bar.add_task(printable(self._title), total=None, words="")
            self._bar.start()
        done, total, words = progress.get("progress"), progress.get("total"), progress.get("message")
        self._bar.update(
            self._task,
            completed=float(done) if isinstance(done, int | float) else 0,
            total=float(total) if isinstance(total, int | float) else None,
            words=printable(str(words or ""))[:LONGEST_WORDS].replace("\n", " "),
        )

    def hide(self) -> None:
        """Hide the bar until the next progress notification, so that other output can be written."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = self._task = None


def _new_bar() -> "Progress":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[words]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )
