"""The index lists every helper module for tests."""

import re

from support.documentation import ROOT

SUPPORT = ROOT / "tests/support"


def test_the_index_of_test_helpers_lists_every_module_once_and_in_its_folder() -> None:
    listed, folder = [], ""
    for name in re.findall(r"^\| (`\w+`|in this folder) \|", (SUPPORT / "README.md").read_text("utf-8"), re.MULTILINE):
        name = name.strip("`")
        if name == "in this folder" or (SUPPORT / name).is_dir():
            folder = "" if name == "in this folder" else f"{name}/"
        else:
            listed.append(f"{folder}{name}.py")
    modules = [file.relative_to(SUPPORT).as_posix() for file in SUPPORT.rglob("*.py") if file.name != "__init__.py"]
    assert sorted(listed) == sorted(modules)
