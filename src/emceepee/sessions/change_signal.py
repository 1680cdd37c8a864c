"""The one signal of a session: something about it is different now."""

from collections.abc import Callable


class ChangeSignal:
    """Call it to tell all who watch. They must be quick and not raise; what is different they see for themselves."""

    __slots__ = ("_watchers",)

    def __init__(self) -> None:
        self._watchers: list[Callable[[], None]] = []

    def __call__(self) -> None:
        for watcher in self._watchers:
            watcher()

    def watch(self, watcher: Callable[[], None]) -> None:
        self._watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        self._watchers.remove(watcher)
