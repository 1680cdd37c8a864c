"""An installation of emceepee includes every package that it imports, as a direct dependency of its own."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

from support.documentation import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OWN = {"emceepee", "support", "bench", "conftest"}
ELSEWHERE = {ROOT / place for place in ("tests/clients", "tests/node", "bench/peers")}  # with environments of their own
NOT_IMPORTED = {
    "codespell": "a program",
    "coverage": "what pytest-cov drives",
    "editables": "what hatchling needs",
    "hatchling": "what builds the package",
    "hiredis": "what redis parses with",
    "import-linter": "a program",
    "mcp-server-git": "a program",
    "mcp-server-time": "a program",
    "mypy": "a program",
    "pipx": "a program",
    "pydantic-monty-runtime": "the program that pydantic-monty-client starts",
    "pytest-cov": "a plugin",
    "pytest-timeout": "a plugin",
    "pytest-xdist": "a plugin",
    "ruff": "a program",
    "uv": "a program",
}


def declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[^\w.-]", item)[0].lower() for item in requirements}


EXTRAS = {
    name for extra, items in PROJECT["optional-dependencies"].items() if extra != "dev" for name in declared(items)
}


def test_every_extra_belongs_to_an_imported_package() -> None:
    assert imported("src") >= EXTRAS


def imported(*folders: str) -> set[str]:
    """The names, as they are installed by, of all packages that the files in these folders import."""
    return {
        found
        for folder in folders
        for file in files_in(ROOT / folder)
        for module in modules_of(file)
        if module.partition(".")[0] not in sys.stdlib_module_names | OWN
        if (found := distribution_of(module)) is not None
    }


DISTRIBUTIONS = packages_distributions()


@cache
def distribution_of(module: str) -> str | None:
    """None for what is only a name in a module that another entry stands for."""
    package = module.partition(".")[0]
    candidates = DISTRIBUTIONS.get(package, [package])
    if len(set(candidates)) == 1:
        return candidates[0].lower().replace("_", "-")
    path = module.replace(".", "/")  # several share one package
    owners = {name for name in candidates if {f"{path}.py", f"{path}/__init__.py"} & files_of(name)}
    return owners.pop().lower().replace("_", "-") if owners else None


@cache
def files_of(name: str) -> frozenset[str]:
    return frozenset(str(file) for file in distribution(name).files or ())


def files_in(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir() and path not in ELSEWHERE:
            yield from files_in(path)
        elif path.suffix == ".py":
            yield path


def modules_of(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_emceepee_declares_exactly_the_packages_that_it_imports() -> None:
    needed, used = declared(PROJECT["dependencies"]), imported("src") - EXTRAS
    assert used - needed == set()
    assert needed - used - set(NOT_IMPORTED) == set()


def test_the_tests_declare_exactly_the_packages_that_they_import() -> None:
    needed, used = declared(PROJECT["optional-dependencies"]["dev"]), imported("tests", "bench", "docs", "examples")
    assert used - needed - declared(PROJECT["dependencies"]) - EXTRAS == set()
    assert needed - used - set(NOT_IMPORTED) == set()
