"""The surfaces: which tools a caller sees, and how texts name a call of a tool.

A surface decides what `tools/list` returns, not what may be called. Texts written by emceepee name a tool with
`call_to`, which returns the notation for a caller on the surface of the current request.
"""

from collections.abc import Collection
from contextvars import ContextVar
from enum import StrEnum
from types import EllipsisType

OWN_SERVER = "emceepee"  # the server name under which emceepee's own tools and resources are reached
SEARCH, RUN_CODE = "codemode_search", "codemode_execute"
FORM = "{…}"  # placeholder for an object argument in a displayed call


class Surface(StrEnum):
    """The set of listed tools."""

    FULL = "full"
    """Every tool."""
    LITE = "lite"
    """The tools that most conversations need; `execute_tool` with the server `emceepee` reaches the rest."""
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
_SAME = {"list_tools": SEARCH}  # the listed substitute of an unlisted tool
_current: ContextVar[Surface] = ContextVar("surface", default=Surface.FULL)


class UnknownSurface(ValueError):
    """The surface is unknown; the message lists the known ones."""


def parse_surface(text: str) -> Surface:
    """Raises: UnknownSurface."""
    try:
        return Surface(text)
    except ValueError:
        raise UnknownSurface(f"no surface is called {text[:40]!r}; there are {', '.join(SURFACES)}") from None


def use_surface(surface: Surface) -> None:
    """Use the surface for the rest of this task and for the tasks that it starts."""
    _current.set(surface)


def current_surface() -> Surface:
    return _current.get()


def is_listed(tool: str, surface: Surface) -> bool:
    return surface is Surface.FULL or tool in _LISTED[surface]


def order_of_listing(surface: Surface, names: Collection[str]) -> list[str]:
    """Return the names that the surface lists, in its order."""
    listed = _LISTED.get(surface)
    return list(names) if listed is None else [name for name in listed if name in names]


def call_to(tool: str, **arguments: "str | EllipsisType") -> str:
    """Return how this request's caller calls a tool: its name, or a call with arguments. `...` stands for a value."""
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
