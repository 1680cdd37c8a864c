"""What only takes a word does not wait for everything to be loaded."""

import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from support.figures import record_figure

HEAVY = (
    *("asyncio", "emceepee.app", "emceepee.config", "mcp", "pydantic", "rich"),
    *("ruamel.yaml", "ssl", "tomlkit", "uvloop"),
)
LOADED = f"import sys; import emceepee.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
MOST_SECONDS = 0.25
TRIES = 3  # of which the quickest counts: the first may have to compile


def test_the_command_line_is_read_before_the_rest_is_loaded() -> None:
    """`--version`, `--help` and a mistake in the configuration are answered at once."""
    done = subprocess.run((sys.executable, "-c", LOADED), capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.alone
@pytest.mark.parametrize(
    "arguments",
    [
        *(["--version"], ["--help"], ["import", "--dry-run"], ["undo", "--list"]),
        *(["call", "--help"], ["servers", "list"], ["version", "--json"], ["completion", "bash"]),
    ],
    ids=" ".join,
)
def test_commands_without_a_protocol_answer_at_once(arguments: list[str], tmp_path: Path) -> None:
    """By the processor's clock, which counts nobody else's work."""
    servers = tmp_path / ".cursor" / "mcp.json"
    servers.parent.mkdir()
    servers.write_text('{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}')
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    taken = []
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = (sys.executable, "-m", "emceepee", *arguments)
        subprocess.run(command, capture_output=True, timeout=30, check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    record_figure(f"emceepee {' '.join(arguments)} takes {min(taken):.2f} s of processor time")
    assert min(taken) < MOST_SECONDS
