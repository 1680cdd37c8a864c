"""The surfaces: which tools a caller is shown, and in which words it is told to call one.

A surface decides what `tools/list` shows, not what may be called. Texts of emceepee's own name a tool by `call_to`,
which says how a caller of the surface of this request reaches it.
"""

from collections.abc import Collection
from contextvars import ContextVar
from enum import StrEnum
from types import EllipsisType

OWN_SERVER = "emceepee"  # the name under which emceepee's own tools and resources are reached, as if it were a server
SEARCH, RUN_CODE = "codemode_search", "codemode_execute"
FORM = "{…}"  # an argument that is an object, in a call that is shown


class Surface(StrEnum):
    """How much of emceepee is listed."""

    FULL = "full"
    """Every tool."""
    LITE = "lite"
    """What a conversation needs most; `execute_tool` with the server `emceepee` reaches the rest."""
    CODEMODE = "codemode"
    """Search and scripts alone; `mcp.tool` in a script reaches the rest."""


SURFACES = tuple(str(surface) for surface in Surface)
_LISTED: dict[Surface, tuple[str, ...]] = {
    Surface.LITE: (
        *(SEARCH, "execute_tool", "list_servers", "add_server", "read_resource"),
        *("await_activity", "get_task_result", "respond_to_elicitation"),
    ),
    Surface.CODEMODE: (SEARCH, RUN_CODE),
}
_SAME = {"list_tools": SEARCH}  # what stands for a tool where that is not listed
_current: ContextVar[Surface] = ContextVar("surface", default=Surface.FULL)


class UnknownSurface(ValueError):
    """The text says which there are."""


def parse_surface(text: str) -> Surface:
    """Raises: UnknownSurface."""
    try:
        return Surface(text)
    except ValueError:
        raise UnknownSurface(f"no surface is called {text[:40]!r}; there are {', '.join(SURFACES)}") from None


def use_surface(surface: Surface) -> None:
    """For the rest of this task, and the tasks that it starts."""
    _current.set(surface)


def current_surface() -> Surface:
    return _current.get()


def is_listed(tool: str, surface: Surface) -> bool:
    return surface is Surface.FULL or tool in _LISTED[surface]


def order_of_listing(surface: Surface, names: Collection[str]) -> list[str]:
    """Those of the names that the surface lists, in the order in which it does."""
    listed = _LISTED.get(surface)
    return list(names) if listed is None else [name for name in listed if name in names]


def call_to(tool: str, **arguments: "str | EllipsisType") -> str:
    """How the caller of this request calls a tool: the name alone, or with arguments. `...` stands for a value."""
    surface = _current.get()
    if surface is not Surface.FULL and tool not in _LISTED[surface]:
        tool = _SAME.get(tool, tool)
    if is_listed(tool, surface):
        shown = ", ".join(f"{name}={_shown(value)}" for name, value in arguments.items())
        return f"{tool}({shown})" if arguments else tool
    given = ", ".join(f'"{name}": {_shown(value)}' for name, value in arguments.items())
    if surface is Surface.LITE:
        rest = f", args={{{given}}}" if given else ""
        return f'execute_tool(server="{OWN_SERVER}", tool="{tool}"{rest})'
    return f'mcp.tool("{tool}", {f"{{{given}}}" if given else "…"}) in {RUN_CODE}'


def _shown(value: "str | EllipsisType") -> str:
    if value is ...:
        return "…"
    return value if value == FORM else f'"{value}"'
