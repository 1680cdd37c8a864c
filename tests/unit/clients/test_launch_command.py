"""The command that a client runs to start emceepee, derived from how emceepee was started."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from emceepee.clients.launch_command import ProcessStart, own_command

UVX = "/home/ada/.cache/uv/archive-v0/3uWjcilN3gEf/bin/emceepee"
PIPX = "/home/ada/.cache/pipx/1578710c11ef221/bin/emceepee"
WORDS = ("install", "cursor", "--yes")


def by_uvx(*parent: str, folder: Path = Path("/"), origin: object = None) -> tuple[str, ...]:
    start = ProcessStart(
        program=UVX,
        arguments=WORDS,
        executable="/home/ada/.cache/uv/archive-v0/3uWjcilN3gEf/bin/python",
        parent=(*parent, *WORDS, "") if parent else (),
        origin=None if origin is None else json.dumps(origin),
        folder=folder,
    )
    return own_command(start)


@pytest.mark.parametrize(
    ("parent", "command"),
    [
        (("/usr/bin/uv", "tool", "uvx", "emceepee"), ("uvx", "emceepee")),
        (("uvx", "emceepee@0.2.0"), ("uvx", "emceepee@0.2.0")),
        (
            ("uv", "tool", "uvx", "--from", "git+https://host.test/emceepee@main", "emceepee"),
            ("uvx", "--from", "git+https://host.test/emceepee@main", "emceepee"),
        ),
        (
            ("uv", "tool", "run", "--refresh", "--with", "keyring", "--from=emceepee[otel]", "emceepee"),
            ("uv", "tool", "run", "--with", "keyring", "--from=emceepee[otel]", "emceepee"),
        ),
    ],
    ids=" ".join,
)
def test_a_uvx_launch_command_repeats_the_current_options(parent: tuple[str, ...], command: tuple[str, ...]) -> None:
    assert by_uvx(*parent) == command


def test_relative_paths_in_a_launch_command_become_absolute(tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "x.whl").touch()
    (tmp_path / "emceepee").mkdir()  # a bare name is a package, even if a folder has that name
    parent = ("uv", "tool", "uvx", "--from", "./dist/x.whl", "--with=dist/x.whl", "--find-links", "dist/no", "emceepee")
    assert by_uvx(*parent, folder=tmp_path) == (
        *("uvx", "--from", f"{tmp_path}/dist/x.whl", f"--with={tmp_path}/dist/x.whl"),
        *("--find-links", "dist/no", "emceepee"),
    )


def test_a_relative_file_in_a_launch_command_becomes_absolute_only_after_an_option_that_takes_a_file(
    tmp_path: Path,
) -> None:
    for name in ("pins.txt", "more.txt", "keyring"):
        (tmp_path / name).touch()
    parent = ("uvx", "-c", "pins.txt", "--overrides=more.txt", "--with", "keyring", "-f", "gone", "emceepee")
    assert by_uvx(*parent, folder=tmp_path) == (
        *("uvx", "-c", f"{tmp_path}/pins.txt", f"--overrides={tmp_path}/more.txt"),
        *("--with", "keyring", "-f", "gone", "emceepee"),
    )


@pytest.mark.parametrize(
    ("origin", "spec"),
    [
        ({"url": "file:///srv/a%20b/x.whl", "archive_info": {}}, "/srv/a b/x.whl"),
        ({"url": "https://host.test/x.whl", "archive_info": {}}, "https://host.test/x.whl"),
        (
            {"url": "https://host.test/x", "vcs_info": {"vcs": "git", "requested_revision": "v2", "commit_id": "a"}},
            "git+https://host.test/x@v2",
        ),
        (
            {"url": "https://host.test/x", "vcs_info": {"vcs": "git", "commit_id": "a"}, "subdirectory": "py"},
            "git+https://host.test/x#subdirectory=py",
        ),
    ],
)
def test_without_a_visible_parent_command_the_package_origin_determines_the_launch_command(
    origin: Any, spec: str
) -> None:
    assert by_uvx(origin=origin) == by_uvx("/bin/bash", origin=origin) == ("uvx", "--from", spec, "emceepee")
    start = ProcessStart(program=PIPX, executable="/usr/bin/python3", origin=json.dumps(origin))
    assert own_command(start) == ("pipx", "run", "--spec", spec, "emceepee")


@pytest.mark.parametrize("origin", ["", "{", "[]", "{}", '{"url": 5}', '{"url": "x", "vcs_info": 5}'])
def test_without_a_known_origin_the_launch_command_uses_the_package_name(origin: str) -> None:
    of_a_set_home = "/srv/tools/.cache/f503b1bf9507063/bin/emceepee"  # with PIPX_HOME=/srv/tools
    usual = ("/home/ada/.cache/pipx/1/bin/emceepee", "/Users/ada/Library/Caches/pipx/1/bin/emceepee", PIPX)
    places = (*usual, of_a_set_home)
    for program in places:
        assert own_command(ProcessStart(program=program, executable="/x/python", origin=origin)) == (
            "pipx",
            "run",
            "emceepee",
        )
    assert own_command(ProcessStart(program=UVX, executable="/x/python", origin=origin)) == ("uvx", "emceepee")


def test_an_installed_program_is_launched_by_its_path(tmp_path: Path) -> None:
    program = tmp_path / "venv" / "bin" / "emceepee"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    of_its_own = ProcessStart(program=str(program), executable="/usr/bin/python3", parent=("uvx", "emceepee", *WORDS))
    assert own_command(of_its_own) == (str(program),)
    as_module = ProcessStart(program="/x/emceepee/__main__.py", executable=str(program.with_name("python")))
    assert own_command(as_module) == (str(program),)
    program.unlink()
    assert own_command(as_module) == (str(program.with_name("python")), "-P", "-m", "emceepee")
    assert own_command(ProcessStart(program="/x/__main__.py"))[0].startswith(str(Path(sys.executable).parent))
