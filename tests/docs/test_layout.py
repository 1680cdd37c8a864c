"""The source stays easy to navigate: small packages with docstrings, unique names, and few late callbacks."""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.documentation import ROOT

SOURCE = ROOT / "src" / "emceepee"
MODULES = sorted(SOURCE.rglob("*.py"))
ROOMS = sorted(path.parent for path in SOURCE.rglob("__init__.py"))
MOST_FILES = 22  # of Python, in one folder
MOST_LOOSE_MODULES = 10  # beside the rooms, without `__init__` and `__main__`
MOST_LINES = 450  # per module
MOST_LATE_CALLBACKS = 6


def name_of(room: Path) -> str:
    return room.relative_to(SOURCE).as_posix()


def test_public_class_names_are_unique() -> None:
    statements = (statement for path in MODULES for statement in ast.parse(path.read_text("utf-8")).body)
    names = Counter(each.name for each in statements if isinstance(each, ast.ClassDef) and each.name[0] != "_")
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_module_names_are_unique() -> None:
    names = Counter(path.name for path in MODULES if not path.name.startswith("__"))
    assert {name: count for name, count in names.items() if count > 1} == {}


def test_modules_are_short() -> None:
    lines = {name_of(path): path.read_text("utf-8").count("\n") for path in MODULES}
    assert {name: count for name, count in lines.items() if count > MOST_LINES} == {}


def is_callable(annotation: ast.expr) -> bool:
    """Whether a value of this type is one callback, and not a collection of them."""
    text = ast.unparse(annotation)
    return "Callable[" in text and not text.startswith(("dict[", "list[", "tuple[", "Sequence["))


def late_callbacks(sources: dict[str, str]) -> list[str]:
    """Find the assignments of a public callback of one object by another, after its construction."""
    nodes = [(name, node) for name, source in sources.items() for node in ast.walk(ast.parse(source))]
    callbacks: set[str] = set()
    values: set[str] = set()  # names that are attributes of other types elsewhere, so that they prove nothing
    for _, node in nodes:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute | ast.Name):
            name = node.target.attr if isinstance(node.target, ast.Attribute) else node.target.id
            if is_callable(node.annotation):
                callbacks.add(name)
            elif "Callable[" not in ast.unparse(node.annotation):
                values.add(name)
    declared = callbacks - values

    def targets(node: ast.AST) -> Iterator[ast.expr]:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            yield from target.elts if isinstance(target, ast.Tuple) else (target,)

    return sorted(
        f"{name}: {ast.unparse(target)}"
        for name, node in nodes
        for target in targets(node)
        if isinstance(target, ast.Attribute)
        and target.attr in declared
        and not target.attr.startswith("_")
        and not (isinstance(target.value, ast.Name) and target.value.id == "self")
    )


def test_few_callbacks_are_assigned_after_construction() -> None:
    found = late_callbacks({name_of(path): path.read_text("utf-8") for path in MODULES})
    assert len(found) <= MOST_LATE_CALLBACKS, found


def test_the_layout_check_finds_a_callback_assigned_after_construction() -> None:
    declared = "class Link:\n    def __init__(self) -> None:\n        self.on_end: Callable[[], None] | None = None\n"
    assert late_callbacks({"a": declared, "b": "link.on_end = stop"}) == ["b: link.on_end"]
    assert late_callbacks({"a": declared, "b": "link.ended = stop"}) == []


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_each_package_has_few_modules(room: Path) -> None:
    assert len(list(room.glob("*.py"))) <= MOST_FILES


def test_few_modules_are_outside_of_packages() -> None:
    loose = [path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")]
    assert len(loose) <= MOST_LOOSE_MODULES, loose


@pytest.mark.parametrize("room", ROOMS[1:], ids=name_of)
def test_the_docstring_of_a_package_lists_its_permitted_imports_and_existing_files(room: Path) -> None:
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
    named = [word for word in text.replace("`", " ").split() if word.endswith((".py", ".js", ".ts"))]
    assert "import" in text.lower()
    assert named
    assert [
        name for name in named if not any((folder / name).exists() for folder in (SOURCE, room, room / "page"))
    ] == []
