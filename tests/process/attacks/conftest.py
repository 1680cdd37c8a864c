"""Places for files."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can look into, as those of pytest are not; and the usual mask for new files."""
    folder, mask = Path(tempfile.mkdtemp(prefix="emceepee-")), os.umask(0o022)
    folder.chmod(0o755)
    yield folder
    os.umask(mask)
    shutil.rmtree(folder)
