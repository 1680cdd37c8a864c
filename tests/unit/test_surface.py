import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import emceepee
from emceepee.surface import FORM, Surface, UnknownSurface, call_to, order_of_listing, parse_surface, use_surface
from support.sessions.catalogue import CATALOGUE

SOURCE = Path(emceepee.__file__).parent
_NAMED = re.compile(rf"\b({'|'.join(CATALOGUE)})\b")


def sentences(path: Path) -> Iterator[str]:
    """Return the strings in a file that are longer than a word, without docstrings."""
    tree = ast.parse(path.read_text())
    documented = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    docstrings = {id(node.value) for node in documented}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from [node.value] if " " in node.value else []


def test_messages_name_tools_only_by_the_calls_of_the_current_surface() -> None:
    """Only the instructions differ by surface; the description of a tool is always the same."""
    files = [SOURCE / "errors.py"]
    for room in ("backends", "sessions", "server"):
        files += (path for path in (SOURCE / room).rglob("*.py") if path.name != "instructions.py")
    assert [text for path in files for text in sentences(path) if _NAMED.search(text)] == []


@pytest.mark.parametrize(
    ("surface", "tool", "words"),
    [
        (Surface.FULL, "list_tasks", "list_tasks"),
        (Surface.FULL, "list_tools", "list_tools"),
        (Surface.LITE, "get_task_result", "get_task_result"),
        (Surface.LITE, "list_tools", "codemode_search"),
        (Surface.LITE, "list_tasks", 'execute_tool(server="emceepee", tool="list_tasks")'),
        (Surface.CODEMODE, "list_tools", "codemode_search"),
        (Surface.CODEMODE, "execute_tool", 'mcp.tool("execute_tool", …) in codemode_execute'),
    ],
)
async def test_a_tool_is_named_by_the_call_that_the_surface_offers_for_it(
    surface: Surface, tool: str, words: str
) -> None:
    use_surface(surface)
    assert call_to(tool) == words


@pytest.mark.parametrize(
    ("surface", "words"),
    [
        (Surface.FULL, 'respond_to_sampling(request_id="1", content={…}, model=…)'),
        (
            Surface.LITE,
            'execute_tool(server="emceepee", tool="respond_to_sampling", '
            'args={"request_id": "1", "content": {…}, "model": …})',
        ),
        (
            Surface.CODEMODE,
            'mcp.tool("respond_to_sampling", {"request_id": "1", "content": {…}, "model": …}) in codemode_execute',
        ),
    ],
)
async def test_a_call_to_a_tool_is_shown_with_its_arguments(surface: Surface, words: str) -> None:
    use_surface(surface)
    assert call_to("respond_to_sampling", request_id="1", content=FORM, model=...) == words


def test_an_unknown_surface_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(UnknownSurface, match=r"no surface is called 'tiny'; there are full, lite, codemode"):
        parse_surface("tiny")


def test_only_existing_tools_are_listed_for_a_surface() -> None:
    assert order_of_listing(Surface.LITE, ["list_servers", "set_timer", "execute_tool"]) == [
        "execute_tool",
        "list_servers",
    ]
    assert order_of_listing(Surface.FULL, ["b", "a"]) == ["b", "a"]
