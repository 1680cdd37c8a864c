"""The file of a configuration: how to read it again, and how to detect a change."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from emceepee.config.settings import Config

RELOAD_SIGNAL = signal.SIGUSR1  # not SIGHUP, which a closing terminal sends
MOST_LINKS = 40  # the limit of the operating system
Stamp = tuple[int, ...] | None  # None: the file does not exist


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSource:
    """The file of a configuration, and a function that reads it again. `stamp` was taken before the file was read."""

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
    """Return the folders where a change can replace the file: its own, and those of all symlinks on the path to it."""
    folders: dict[Path, None] = {}
    for _ in range(MOST_LINKS):
        folders[file.parent.absolute()] = None
        folders[file.parent.resolve()] = None
        if not file.is_symlink():
            break
        file = file.parent / os.readlink(file)
    return [folder for folder in folders if folder.is_dir()]
