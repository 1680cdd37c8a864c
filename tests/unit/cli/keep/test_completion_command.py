"""Completion scripts, as far as they can be checked without a shell."""

import argparse
import shutil
import subprocess
from pathlib import Path

import pytest

from emceepee.cli.keep.completion_command import SHELLS, completion_script, nodes_of
from emceepee.cli.main import GROUPS, build_parser


def test_every_command_is_in_a_group_of_the_help() -> None:
    top = next(nodes_of(build_parser()))
    assert {name for name, _ in top.commands} == {name for names in GROUPS.values() for name in names}
    text = build_parser().format_help()
    assert all(f"\n  {name} " in text for name, _ in top.commands)


@pytest.mark.parametrize("shell", SHELLS)
def test_each_completion_script_contains_every_command_and_flag(shell: str) -> None:
    script = completion_script(shell, build_parser())
    for node in nodes_of(build_parser()):
        assert all(name in script for name, _ in node.commands)
        assert all(name.lstrip("-") in script for flag in node.flags for name in flag.names)


def test_quotes_in_a_help_text_cannot_end_the_quotes_of_a_completion_script(tmp_path: Path) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--odd", choices=("a",), help='it\'s $(touch odd) `touch odd` "odd"')
    for shell in SHELLS:
        script = completion_script(shell, parser)
        if shell != "bash" and shutil.which(shell) is None:
            continue
        subprocess.run((shell, "-n"), input=script, text=True, check=True, timeout=30, cwd=tmp_path)
    subprocess.run(("bash", "--norc"), input=completion_script("bash", parser), text=True, check=True, cwd=tmp_path)
    assert list(tmp_path.iterdir()) == []
