"""An emceepee that gives up root's rights before it starts: root is not held by permissions, so it cannot test them.

Everything is loaded first, because the interpreter itself may lie where nobody else can read.
"""

import ctypes
import os
import shutil
import sys

import uvicorn.lifespan.off
import uvicorn.protocols.http.httptools_impl

import emceepee.app
from emceepee.cli.main import main

NOBODY = 65534
_PR_SET_DUMPABLE = 4
LOADED = (emceepee.app, uvicorn.lifespan.off, uvicorn.protocols.http.httptools_impl)
SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")  # which anyone can start


def give_up_root() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    # The kernel hides a process that has just given up its rights; one that never had them is not hidden.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    sys.executable = SYSTEM_PYTHON or sys.executable


if __name__ == "__main__":
    give_up_root()
    sys.exit(main())
