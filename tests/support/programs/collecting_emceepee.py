"""An emceepee whose list_servers tells instead what only the collector could free, by type, since it was last asked.

From then on the collector itself is off.
"""

import gc
import sys
from collections import Counter
from typing import Any

from emceepee.cli.main import main
from emceepee.sessions.session import Session
from emceepee.tools.declaration import Outcome
from emceepee.tools.request_context import RequestContext
from emceepee.tools.servers import list_servers


async def garbage(params: Any, session: Session, caller: RequestContext) -> Outcome:
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    found = Counter(type(each).__qualname__ for each in gc.garbage)
    gc.set_debug(0)
    gc.garbage.clear()
    gc.collect()  # now it is really gone
    return {"garbage": dict(found)}


if __name__ == "__main__":
    object.__setattr__(list_servers, "run", garbage)  # frozen for everyone else
    sys.exit(main())
