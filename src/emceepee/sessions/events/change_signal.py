"""The signal that a session's state has changed."""

from collections.abc import Callable


class ChangeSignal:
    """Watchers must be quick and not raise. The signal does not say what has changed, so they check the state."""

    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        self._watchers: list[Callable[[], None]] = []

    def notify(self) -> None:
        for watcher in self._watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        self._watchers.remove(watcher)
