"""Pages for contributors name existing files, and the layer diagram shows the checked layers."""

import re
import tomllib
from pathlib import Path

import pytest

from support.documentation import ROOT

SOURCE = ROOT / "src" / "emceepee"
PAGES = {name: (ROOT / name).read_text("utf-8") for name in ("docs/explanation/architecture.md", "CONTRIBUTING.md")}
FOLDERS = (ROOT, SOURCE, SOURCE / "backends", SOURCE / "console" / "page")
METHODS = frozenset({"tools/call", "tools/list"})


def places(name: str, folders: tuple[Path, ...]) -> list[Path]:
    return [folder / f"{name}{ending}" for folder in folders for ending in ("", ".py")]


def missing(page: str) -> list[str]:
    """Return the names of files and folders on a page that lead nowhere.

    A name without a folder is beside the last file that its line names in full.
    """
    found, beside = [], SOURCE
    for line in page.splitlines():
        for name in re.findall(r"`(\w+(?:/\w+)*(?:\.py|/)?)`", line):
            if name in METHODS or not ("/" in name or name.endswith(".py")):
                continue
            there = [place for place in places(name.rstrip("/"), (*FOLDERS, beside)) if place.exists()]
            if not there:
                found.append(name)
            elif "/" in name:
                beside = there[0].parent
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_file_named_on_a_page_for_contributors_exists(page: str) -> None:
    assert missing(PAGES[page]) == []


def test_the_check_of_named_files_finds_a_missing_file() -> None:
    assert missing("| `sessions/calls.py`, `tasks.py` beside it, `gone.py`, `sessions/gone` |") == [
        "gone.py",
        "sessions/gone",
    ]


def test_the_layer_diagram_shows_the_layers_that_import_linter_checks() -> None:
    picture = PAGES["docs/explanation/architecture.md"].partition("```mermaid")[2].partition("```")[0]
    boxes = {name: re.findall(r"<b>(\w+)</b>", text) for name, text in re.findall(r"(\w+)\[\"(.*)\"\]", picture)}
    drawn = re.findall(r"\w+", " ".join(re.findall(r"^\s+(.* --> .*)$", picture, re.MULTILINE)))
    order = list(dict.fromkeys(drawn))
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert [" | ".join(boxes[name]) for name in order] == layers
