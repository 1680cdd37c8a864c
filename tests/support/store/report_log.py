"""The reports of a store to its listeners."""

from collections.abc import Collection

from emceepee.store.store import StoreListener


class ReportLog(StoreListener):
    """Appends its name to `changes` for each shared change, and stores the other reports."""

    def __init__(self, name: str, changes: list[str]) -> None:
        self.name, self.changes = name, changes
        self.gone: list[set[int]] = []
        self.returns = 0

    def handle_shared_change(self) -> None:
        self.changes.append(self.name)

    def handle_replicas_gone(self, epochs: Collection[int]) -> None:
        self.gone.append(set(epochs))

    def handle_return(self) -> None:
        self.returns += 1
