"""One request to a backend. It belongs to the session: whoever asked only waits for it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from emceepee.json_types import JsonObject

OnProgress = Callable[[JsonObject], None]


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """`outcome` is the backend's raw result, or an EmceepeeError."""

    backend: str
    method: str
    params: JsonObject
    on_progress: OnProgress | None = None
    outcome: "asyncio.Future[JsonObject]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    runner: "asyncio.Task[None] | None" = None

    def cancel(self) -> None:
        """Give it up; the backend is told."""
        if self.runner is not None:
            self.runner.cancel()

    def progressed(self, params: JsonObject) -> None:
        if self.on_progress is not None:
            self.on_progress({key: value for key, value in params.items() if key != "progressToken"})
