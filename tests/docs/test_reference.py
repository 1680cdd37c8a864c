"""The reference says what the code says."""

import subprocess
import sys
from dataclasses import fields

from emceepee.backends.spec import ServerEntry
from emceepee.errors import ErrorCode
from emceepee.state.limits import Limits
from emceepee.tools.catalogue import TOOLS
from support.pages import ROOT, Page

BOUND = 60.0


def reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8")


def test_the_reference_is_what_the_generator_writes() -> None:
    """If this fails, run `python docs/generate.py` and look at what changed."""
    command = [sys.executable, "docs/generate.py", "--check"]
    check = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BOUND, check=False)
    assert (check.returncode, check.stdout + check.stderr) == (0, "")


def test_every_tool_has_an_entry() -> None:
    headings = Page(ROOT / "docs" / "reference" / "tools.md").anchors()
    assert [tool.name for tool in TOOLS if tool.name not in headings] == []


def test_every_error_code_has_an_entry() -> None:
    assert [code for code in ErrorCode if f"| `{code}` | " not in reference("errors")] == []


def test_every_limit_has_an_entry() -> None:
    assert [item.name for item in fields(Limits) if f"| `{item.name}` | " not in reference("limits")] == []


def test_every_key_of_a_server_has_an_entry() -> None:
    assert [name for name in ServerEntry.model_fields if f"| `{name}` | " not in reference("settings")] == []
