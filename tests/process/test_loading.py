"""What only takes a word does not wait for everything to be loaded."""

import subprocess
import sys

HEAVY = ("mcp", "emceepee.app", "emceepee.cli.auth_work", "emceepee.sessions", "keyring")
LOADED = f"import sys; import emceepee.cli.main; print([name for name in {HEAVY} if name in sys.modules])"


def test_the_command_line_is_read_before_the_rest_is_loaded() -> None:
    """`--version`, `--help` and a mistake in the configuration are answered at once."""
    done = subprocess.run((sys.executable, "-c", LOADED), capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"
