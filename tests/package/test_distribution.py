"""What is published: a source archive, the wheel that is built from it, and emceepee installed from that alone."""

import asyncio
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.callers.emceepee_process import BOUND, EmceepeeProcess
from support.documentation import ROOT
from support.sessions.replies import text_of

pytestmark = pytest.mark.timeout(300)  # packages are fetched and installed

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EMCEEPEE"))}


@dataclass(frozen=True, slots=True)
class Distribution:
    """Both files that are published."""

    archive: Path
    wheel: Path


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def an_environment(place: Path, package: str | Path) -> Path:
    """A new one with only this package and what it needs; the folder of its programs."""
    run(sys.executable, "-m", "venv", "--without-pip", place, cwd=place.parent)
    (place / "pins.txt").write_text("\n".join(pins()))
    pip = (sys.executable, "-m", "pip", "--python", place / "bin" / "python")
    run(*pip, "install", "--no-compile", "-c", place / "pins.txt", package, cwd=place.parent)
    return place / "bin"


def pins() -> list[str]:
    """The versions that the tests run with, without hashes: what is built here has none."""
    [file] = (path for path in (ROOT / "requirements.txt", ROOT / "constraints.txt") if path.exists())
    return re.findall(r"^[\w.-]+==[^\s;]+(?: ;[^\\\n]*)?", file.read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def distribution(tmp_path_factory: pytest.TempPathFactory) -> Distribution:
    """The wheel is built from the archive, so nothing can be in it that the archive lacks."""
    place = tmp_path_factory.mktemp("distribution")
    python = an_environment(place / "builder", "hatchling") / "python"
    run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", place, cwd=ROOT)
    [archive] = place.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(place, filter="data")
    run(
        python, "-m", "hatchling", "build", "-t", "wheel", "-d", place, cwd=place / archive.name.removesuffix(".tar.gz")
    )
    [wheel] = place.glob("*.whl")
    return Distribution(archive, wheel)


@pytest.fixture(scope="module")
def programs(distribution: Distribution, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment in which there is emceepee and nothing that it does not need."""
    return an_environment(tmp_path_factory.mktemp("installed") / "environment", distribution.wheel)


def test_the_wheel_holds_all_sources_and_files_of_the_page_and_nothing_else(distribution: Distribution) -> None:
    sources = {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/emceepee").rglob("*") if path.is_file()
    }
    with zipfile.ZipFile(distribution.wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    checks = {f"emceepee/console/{name}" for name in ("jsconfig.json", "package.json", "wire.d.ts")}  # of the page
    assert held == {name for name in sources - checks if "__pycache__" not in name}
    assert {"emceepee/py.typed", "emceepee/console/page/index.html", "emceepee/console/page/app.js"} <= held


def test_the_source_archive_has_the_license_and_the_changelog(distribution: Distribution) -> None:
    with tarfile.open(distribution.archive) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "pyproject.toml"} <= names


def test_the_installed_program_names_the_version_of_the_project(programs: Path, tmp_path: Path) -> None:
    assert run(programs / "emceepee", "--version", cwd=tmp_path) == f"emceepee {VERSION}\n"


async def test_the_installed_program_holds_a_conversation_on_standard_input_and_output(
    programs: Path, tmp_path: Path
) -> None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        programs / "emceepee", stdin=pipe, stdout=pipe, cwd=tmp_path, env=ENVIRONMENT
    )
    caller = EmceepeeProcess(process)
    hello = await caller.initialize()
    assert hello["result"]["serverInfo"]["version"] == VERSION
    demo = [str(programs / "python"), "-m", "emceepee.demo"]
    await caller.value("add_server", name="demo", command=demo[0], args=demo[1:])
    result = await caller.call("execute_tool", server="demo", tool="add", args={"a": 2, "b": 40})
    assert text_of(result) == "2 + 40 = 42"
    assert await asyncio.wait_for(caller.end(), BOUND) == 0


def test_the_changelog_begins_with_the_version_of_the_project() -> None:
    headings = re.findall(r"^## \[(\S+)\] - (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    version, _, is_in_development = VERSION.partition(".dev")
    assert headings[0][0] == version
    assert (headings[0][1] == "unreleased") == bool(is_in_development)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", date) for _, date in headings[1:])
