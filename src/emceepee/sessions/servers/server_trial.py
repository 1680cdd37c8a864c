"""A server that is tried before it is added or changed. Other callers wait for the outcome."""

import asyncio
from dataclasses import dataclass, field

from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError


@dataclass(slots=True, eq=False)
class Trial:
    """A server that a caller adds or changes. `outcome` gets the error of a failed trial; cancellation cancels it."""

    spec: BackendSpec
    replaces: bool = False  # whether it replaces an existing server
    is_called_off: bool = False  # cancelled, but its connection is still closing
    outcome: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, error: BaseException | None) -> None:
        if error is None:
            self.outcome.set_result(None)
        elif isinstance(error, EmceepeeError):
            self.outcome.set_exception(error)
            self.outcome.exception()  # mark the exception as retrieved: there may be no waiter
        else:
            self.outcome.cancel()
