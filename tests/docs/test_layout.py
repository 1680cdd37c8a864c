"""What keeps the source easy to find one's way in: small rooms that explain themselves, and one class for a name."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from support.documentation import ROOT

SOURCE = ROOT / "src" / "emceepee"
MODULES = sorted(SOURCE.rglob("*.py"))
ROOMS = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
MOST_FILES = 22  # of Python, in one folder
MOST_LOOSE_MODULES = 10  # beside the rooms, without `__init__` and `__main__`


def name_of(room: Path) -> str:
    return room.relative_to(SOURCE).as_posix()


def test_public_class_names_are_unique() -> None:
    statements = (statement for path in MODULES for statement in ast.parse(path.read_text("utf-8")).body)
    names = Counter(each.name for each in statements if isinstance(each, ast.ClassDef) and each.name[0] != "_")
    assert {name: count for name, count in names.items() if count > 1} == {}


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_a_room_has_few_files(room: Path) -> None:
    assert len(list(room.glob("*.py"))) <= MOST_FILES


def test_few_modules_stand_beside_the_rooms() -> None:
    loose = [path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")]
    assert len(loose) <= MOST_LOOSE_MODULES, loose


@pytest.mark.parametrize("room", ROOMS[1:], ids=name_of)
def test_a_room_says_what_it_may_import_and_names_files_that_it_has(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
    named = [word for word in text.replace("`", " ").split() if word.endswith((".py", ".js", ".ts"))]
    assert "import" in text.lower()
    assert named
    assert [
        name for name in named if not any((folder / name).exists() for folder in (SOURCE, room, room / "page"))
    ] == []
