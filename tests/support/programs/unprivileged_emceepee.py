"""An emceepee that gives up root's rights before it starts: root is not held by permissions, so it cannot test them.

Everything is loaded first, because the interpreter itself may lie where nobody else can read.
"""

import atexit
import ctypes
import os
import shutil
import sys
import tempfile

import uvicorn.lifespan.off
import uvicorn.protocols.http.httptools_impl

import emceepee.app.http_app
import emceepee.app.session_parts
import emceepee.cli.serve.serve_command
import emceepee.store.sqlite.sqlite_store
from emceepee.backends.process import guardian
from emceepee.cli.main import main

NOBODY = 65534
_PR_SET_DUMPABLE = 4
LOADED = (
    *(
        emceepee.app.session_parts,
        emceepee.cli.serve.serve_command,
        emceepee.app.http_app,
        emceepee.store.sqlite.sqlite_store,
    ),
    *(uvicorn.lifespan.off, uvicorn.protocols.http.httptools_impl),
)
_ = emceepee.__version__  # is looked up when it is first wanted
SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin:/bin")  # which anyone can start


def give_up_root() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    # The kernel hides a process that has just given up its rights; one that never had them is not hidden.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    sys.executable = SYSTEM_PYTHON or sys.executable


def show_the_guardian() -> None:
    """Put its program where everyone can read it, as it was written: another Python may run it."""
    folder = tempfile.mkdtemp(prefix="guardian-")
    os.chmod(folder, 0o755)
    os.chown(folder, NOBODY, NOBODY)
    guardian.__file__ = shutil.copy(guardian.__file__, folder)
    os.chmod(guardian.__file__, 0o644)
    guardian.__spec__.cached = None
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


if __name__ == "__main__":
    show_the_guardian()
    give_up_root()
    sys.exit(main())
