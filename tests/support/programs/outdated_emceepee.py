"""An emceepee with another version than the installed one."""

import sys

import emceepee

OTHER_VERSION = "0.0.1"

if __name__ == "__main__":
    emceepee.__version__ = OTHER_VERSION
    from emceepee.cli.main import main

    sys.exit(main())
