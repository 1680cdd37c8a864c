"""Find out from the operating system how this process was started."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution

from emceepee.bounds.files import read_file
from emceepee.clients.launch_command import Start
from emceepee.paths import OWN_NAME, current_folder

LONGEST_COMMAND_LINE = 2 << 20  # bytes; the limit of the operating system
PS, PS_SECONDS = "/bin/ps", 5.0  # used if there is no /proc


def read_start() -> Start:
    return Start(
        program=sys.argv[0],
        arguments=tuple(sys.argv[1:]),
        parent=_command_line(os.getppid()),
        origin=_origin(),
        folder=current_folder(),
    )


def _command_line(process: int) -> tuple[str, ...]:
    """Return the process's command line, or an empty tuple if it is unavailable."""
    try:
        return tuple(os.fsdecode(read_file(f"/proc/{process}/cmdline", LONGEST_COMMAND_LINE)).split("\0"))
    except OSError:
        pass
    words = (PS, "-ww", "-o", "args=", "-p", str(process))
    try:
        shown = subprocess.run(words, capture_output=True, text=True, timeout=PS_SECONDS, check=True).stdout
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()
    return tuple(shown.split())


def _origin() -> str | None:
    try:
        return distribution(OWN_NAME).read_text("direct_url.json")
    except (PackageNotFoundError, OSError, ValueError):
        return None
