"""The file that a configuration came from: how to read it again, and how to see that it is another one."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emceepee.config.settings import Config

RELOAD_SIGNAL = signal.SIGUSR1  # not SIGHUP, which a terminal sends that is closed
MOST_LINKS = 40  # as the system follows
Stamp = tuple[int, ...] | None  # None: there is no file


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """Where a configuration came from, and how it is read again. `stamp` is from before it was read."""

    file: Path
    read: Callable[[], Config]
    stamp: Stamp
    is_watched: bool = True


def stamp_of(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def folders_of(file: Path) -> list[Path]:
    """The folders in which a change can make it another file: its own, and those of the links on the way."""
    folders: dict[Path, None] = {}
    for _ in range(MOST_LINKS):
        folders[file.parent.absolute()] = None
        folders[file.parent.resolve()] = None
        if not file.is_symlink():
            break
        file = file.parent / os.readlink(file)
    return [folder for folder in folders if folder.is_dir()]
