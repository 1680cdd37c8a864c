"""A server that is being tried before it is added or changed: others wait for what comes of it."""

import asyncio
from dataclasses import dataclass, field

from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError


@dataclass(slots=True, eq=False)
class Trial:
    """A server that someone is adding or changing. `outcome` is the error if it fails; cancelled if it is given up."""

    spec: BackendSpec
    replaces: bool = False  # one that is there already
    is_called_off: bool = False  # what was started for it is still being ended
    outcome: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, error: BaseException | None) -> None:
        if error is None:
            self.outcome.set_result(None)
        elif isinstance(error, EmceepeeError):
            self.outcome.set_exception(error)
            self.outcome.exception()  # nobody may be waiting for it
        else:
            self.outcome.cancel()
