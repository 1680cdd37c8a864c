"""A small file for its owner alone."""

import os
import tempfile
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Put a new file in the place of whatever is there, which may be someone else's, or a link. Raises: OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # made with mode 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
