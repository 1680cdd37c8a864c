"""An emceepee whose list_servers prints on the way: in Python, past Python's own buffers, in a child."""

import os
import subprocess
import sys
from collections.abc import Awaitable
from typing import Any

from emceepee.cli.main import main
from emceepee.sessions.session import Session
from emceepee.tools.declaration.declaration import Outcome
from emceepee.tools.request_context import RequestContext
from emceepee.tools.server_tools import list_servers

QUIET = list_servers.run


def print_and_list(params: Any, session: Session, caller: RequestContext) -> Awaitable[Outcome]:
    print("printed")
    sys.stdout.flush()
    os.write(1, b"written to descriptor 1\n")
    subprocess.run([sys.executable, "-S", "-c", "print('printed by a child')"], check=True)
    return QUIET(params, session, caller)


if __name__ == "__main__":
    object.__setattr__(list_servers, "run", print_and_list)  # frozen for everyone else
    sys.exit(main())
