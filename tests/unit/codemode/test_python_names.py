"""Python names of servers and tools."""

import builtins
import keyword
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.codemode.python_names import SANDBOX_MODULES, module_names, python_names


def test_names_become_unique_python_identifiers() -> None:
    names = ["create-issue", "create issue", "3d", "_x", "from", "ok", "", "naïve", "None", "create_issue_2"]
    assert list(python_names(names).values()) == [
        *("create_issue", "create_issue_2", "x3d", "x_x", "from_", "ok", "x", "na_ve", "None_", "create_issue_2_2"),
    ]


@given(st.lists(st.text(), unique=True))
def test_any_names_become_unique_python_identifiers(names: list[str]) -> None:
    found = list(python_names(names).values())
    assert len(set(found)) == len(names)
    assert all(name.isascii() and name.isidentifier() and not name.startswith("_") for name in found)


def test_many_colliding_python_names_are_resolved_quickly() -> None:
    began = time.process_time()
    assert len(set(python_names("\u00e4" * number for number in range(1, 20_000)).values())) == 19_999
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    ("server", "module"),
    [
        ("github", "github"),
        ("my-server", "my_server"),
        ("time", "time_"),
        ("json", "json_"),
        ("re", "re_"),
        ("os", "os_"),
        ("sys", "sys_"),
        ("mcp", "mcp_"),
        ("class", "class_"),
        ("None", "None_"),
        ("list", "list_"),
        ("filter", "filter_"),
        ("email", "email"),
        ("help", "help"),
        ("3d", "x3d"),
    ],
)
def test_the_module_name_of_a_server_avoids_python_names(server: str, module: str) -> None:
    assert module_names([server]) == {server: module}


def test_the_module_name_of_a_server_is_stable_when_another_one_collides() -> None:
    names = module_names(["time", "time_", "a-b", "a_b"])
    assert names == {"time_": "time_", "a_b": "a_b", "time": "time__2", "a-b": "a_b_2"}


def test_the_sandbox_accepts_every_generated_module_name() -> None:
    """The sandbox rejects exactly its own modules. Add new ones to the list."""
    pydantic_monty = pytest.importorskip("pydantic_monty")
    servers = {*sys.stdlib_module_names, *dir(builtins), *keyword.kwlist, "mcp", "servers", "github"}

    def is_taken(name: str) -> bool:
        try:
            pydantic_monty.ExternalModule({name: pydantic_monty.ExternalModule({}, stubs="")}, stubs="")
        except ValueError:
            return False
        return True

    modules = module_names(servers)
    assert [name for name in modules.values() if not is_taken(name)] == []
    assert {name for name in sys.stdlib_module_names if not is_taken(name)} == SANDBOX_MODULES
