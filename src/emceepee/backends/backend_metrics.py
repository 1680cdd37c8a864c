"""Counters of backend events in this process."""

from collections import Counter

from emceepee.telemetry.label_values import LabelValues

MOST_SERVERS = 100  # servers that are counted separately


class BackendMetrics:
    """The counters of one process."""

    def __init__(self) -> None:
        self._servers = LabelValues(MOST_SERVERS)
        self.restarts: Counter[str] = Counter()  # of child processes, by server
        self.refreshes: Counter[str] = Counter()  # of access tokens, by outcome

    def count_restart(self, server: str) -> None:
        self.restarts[self._servers.value_of(server)] += 1

    def count_refresh(self, *, is_done: bool) -> None:
        self.refreshes["success" if is_done else "error"] += 1
