"""emceepee as it is published: built from this checkout, and installed where nothing else is."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from support.documentation import ROOT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
UV = Path(sys.executable).parent / "uv"
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "EMCEEPEE"))}


@dataclass(frozen=True, slots=True)
class Distribution:
    """Both files that are published."""

    archive: Path
    wheel: Path


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] = ENVIRONMENT) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def an_environment(place: Path, package: str | Path) -> Path:
    """A new one with only this package and what it needs; the folder of its programs."""
    run(UV, "venv", "--quiet", "--python", sys.executable, place, cwd=place.parent)
    (place / "pins.txt").write_text("\n".join(pins()))
    install = ("install", "--quiet", "--python", place / "bin" / "python", "-c", place / "pins.txt", package)
    run(UV, "pip", *install, cwd=place.parent)
    return place / "bin"


def pins() -> list[str]:
    """The versions that the tests run with, without hashes: what is built here has none."""
    [file] = (path for path in (ROOT / "requirements.txt", ROOT / "constraints.txt") if path.exists())
    return re.findall(r"^[\w.-]+==[^\s;]+(?: ;[^\\\n]*)?", file.read_text("utf-8"), re.MULTILINE)


def build(place: Path) -> Distribution:
    """The wheel is built from the archive, so nothing can be in it that the archive lacks."""
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
