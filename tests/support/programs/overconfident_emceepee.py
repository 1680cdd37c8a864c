"""An emceepee with a planted bug: after a pause of any length, it believes that its lease is still valid."""

import sys

from emceepee.cli.main import main
from emceepee.state.replica import LeaseWatch


def is_always_sure(watch: LeaseWatch, now: float) -> bool:
    return True


if __name__ == "__main__":
    LeaseWatch.is_sure = is_always_sure  # type: ignore[assignment, method-assign]  # that is the bug
    sys.exit(main())
