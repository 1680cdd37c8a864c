"""How much memory this process has."""

import os
from pathlib import Path

STATM = Path("/proc/self/statm")
RESIDENT_FIELD = 1  # in pages


def resident_bytes() -> int | None:
    """None where the system does not tell it so."""
    try:
        return int(STATM.read_text().split()[RESIDENT_FIELD]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
