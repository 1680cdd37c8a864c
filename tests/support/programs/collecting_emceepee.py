"""An emceepee whose list_servers tells instead what only the collector could free, by type, since it was last asked.

`garbageBytes` is the size of the large texts and bytes that it holds. From the first answer on, the collector itself is
off.
"""

import gc
import sys
from collections import Counter
from collections.abc import Iterable
from typing import Any

from emceepee.cli.main import main
from emceepee.sessions.session import Session
from emceepee.tools.declaration.declaration import Outcome
from emceepee.tools.request_context import RequestContext
from emceepee.tools.server_tools import list_servers

LARGE_BYTES = 50_000


def large_bytes(holders: Iterable[object]) -> int:
    """The size of all the large texts and bytes that they hold, each counted once.

    The collector tracks no dict whose values are all texts and numbers: look through those.
    """
    sizes: dict[int, int] = {}
    waiting, seen = gc.get_referents(*holders), set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen or gc.is_tracked(one):
            continue
        seen.add(id(one))
        if isinstance(one, str | bytes | bytearray):
            sizes[id(one)] = len(one) if len(one) > LARGE_BYTES else 0
        else:
            waiting += gc.get_referents(one)
    return sum(sizes.values())


async def garbage(params: Any, session: Session, caller: RequestContext) -> Outcome:
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    found = Counter(type(each).__qualname__ for each in gc.garbage)
    held = large_bytes(gc.garbage)
    gc.set_debug(0)
    gc.garbage.clear()
    gc.collect()  # now it is really gone
    return {"garbage": dict(found), "garbageBytes": held}


if __name__ == "__main__":
    object.__setattr__(list_servers, "run", garbage)  # frozen for everyone else
    sys.exit(main())
