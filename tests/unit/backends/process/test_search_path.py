import os
from pathlib import Path

import pytest

from emceepee.backends.process.search_path import drop_relative_folders, find_program


def test_only_absolute_folders_stay_on_the_search_path() -> None:
    environment = {"PATH": os.pathsep.join(("", ".", "/usr/bin", "node_modules/.bin", "/bin"))}
    drop_relative_folders(environment)
    assert environment == {"PATH": f"/usr/bin{os.pathsep}/bin"}


@pytest.mark.parametrize("path", ["", ".", f".{os.pathsep}bin"])
def test_a_search_path_without_absolute_folders_becomes_the_default_path(path: str) -> None:
    """An empty PATH would mean the working directory."""
    environment = {"PATH": path}
    drop_relative_folders(environment)
    assert environment == {"PATH": os.defpath}


def test_a_missing_search_path_stays_missing() -> None:
    environment: dict[str, str] = {}
    drop_relative_folders(environment)
    assert environment == {}


def test_a_program_in_the_working_directory_is_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    program = tmp_path / "planted"
    program.touch(mode=0o755)
    assert find_program("planted", f".{os.pathsep}") is None
    assert find_program("planted", f".{os.pathsep}{tmp_path}") == str(program)
