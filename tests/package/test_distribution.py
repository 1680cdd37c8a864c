"""The published files: a source archive, its wheel, and an installation from that wheel alone."""

import asyncio
import re
import tarfile
import zipfile
from pathlib import Path

import pytest

from support.callers.emceepee_process import BOUND, EmceepeeProcess
from support.distribution import ENVIRONMENT, VERSION, Distribution, run
from support.documentation import ROOT
from support.sessions.replies import text_of

pytestmark = pytest.mark.timeout(300)  # packages are fetched and installed


def test_the_wheel_contains_exactly_the_sources_and_the_files_of_the_page(distribution: Distribution) -> None:
    sources = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/emceepee").rglob("*") if path.is_file()
    }
    with zipfile.ZipFile(distribution.wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    checks = {f"emceepee/console/{name}" for name in ("jsconfig.json", "package.json", "wire.d.ts")}  # of the page
    assert held == {name for name in sources - checks if "__pycache__" not in name}
    assert {"emceepee/py.typed", "emceepee/console/page/index.html", "emceepee/console/page/app.js"} <= held


def test_the_source_archive_contains_the_license_and_the_changelog(distribution: Distribution) -> None:
    with tarfile.open(distribution.archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml"} <= names


def test_the_installed_program_prints_the_version_of_the_project(programs: Path, tmp_path: Path) -> None:
    assert run(programs / "emceepee", "--version", cwd=tmp_path) == f"emceepee {VERSION}\n"


async def test_the_installed_program_serves_a_conversation_on_stdio(programs: Path, tmp_path: Path) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        programs / "emceepee", stdin=pipe, stdout=pipe, cwd=tmp_path, env=ENVIRONMENT
    )
    caller = EmceepeeProcess(process)
    hello = await caller.initialize()
    assert hello["result"]["serverInfo"]["version"] == VERSION
    await caller.value("add_server", name="demo", command=str(programs / "emceepee-demo"))
    result = await caller.call("execute_tool", server="demo", tool="add", args={"a": 2, "b": 40})
    assert text_of(result) == "2 + 40 = 42"
    assert await asyncio.wait_for(caller.end(), BOUND) == 0


def test_the_changelog_begins_with_the_version_of_the_project() -> None:
    headings = re.findall(r"^## \[(\S+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    version, _, is_in_development = VERSION.partition(".dev")
    assert headings[0][0] == version
    assert (headings[0][1] == "unreleased") == bool(is_in_development)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in headings[1:])
