"""An emceepee that writes, when it ends, which modules it has loaded by then."""

import atexit
import os
import sys
from pathlib import Path

from emceepee.cli.main import main

MODULES_FILE = "MODULES_FILE"


def write_modules(file: Path) -> None:
    file.write_text("\n".join(sys.modules))


if __name__ == "__main__":
    atexit.register(write_modules, Path(os.environ[MODULES_FILE]))
    sys.exit(main())
