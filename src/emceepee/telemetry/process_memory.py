"""The memory use of this process."""

import os
from pathlib import Path

STATM = Path("/proc/self/statm")
RESIDENT_FIELD = 1  # in pages


def resident_bytes() -> int | None:
    """Return the resident size, or None if the system does not report it."""
    try:
        return int(STATM.read_text().split()[RESIDENT_FIELD]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
