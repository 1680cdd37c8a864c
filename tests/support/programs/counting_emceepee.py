"""An emceepee whose list_servers counts its tasks, sessions, and memory, so that a test sees a leak."""

import asyncio
import gc
import sys
from typing import Any

from emceepee.cli.main import main
from emceepee.sessions.session import Session
from emceepee.tools.declaration.declaration import Outcome
from emceepee.tools.request_context import RequestContext
from emceepee.tools.server_tools import list_servers


async def count(params: Any, session: Session, caller: RequestContext) -> Outcome:
    gc.collect()  # what waits for the collector is not what piles up
    sessions = sum(isinstance(item, Session) for item in gc.get_objects())
    return {
        "asyncioTasks": len(asyncio.all_tasks()),
        "sessionCount": sessions,
        "memoryBlocks": sys.getallocatedblocks(),
    }


if __name__ == "__main__":
    object.__setattr__(list_servers, "run", count)  # frozen for everyone else
    sys.exit(main())
