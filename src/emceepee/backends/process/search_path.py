"""Program lookup on the PATH, without the working directory: an opened repository must not supply programs."""

import os
import shutil
from collections.abc import MutableMapping


def drop_relative_folders(environment: MutableMapping[str, str]) -> None:
    """Keep only absolute folders on the PATH, for this process and its children.

    An empty PATH would mean the working directory to execvp, so it becomes the system's default.
    """
    if (path := environment.get("PATH")) is not None:
        environment["PATH"] = _absolute_folders(path) or os.defpath


def find_program(name: str, path: str | None) -> str | None:
    """Return the program's absolute path, or None. Relative folders on `path` are skipped."""
    return shutil.which(name, path=None if path is None else _absolute_folders(path))


def _absolute_folders(path: str) -> str:
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))
