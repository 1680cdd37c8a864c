"""`from servers import github`: the tools of servers as modules with typed functions."""

import asyncio
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from emceepee.backends.catalog import ListKind
from emceepee.backends.connection import Connection
from emceepee.bounds.budget import Budget
from emceepee.codemode.bindings import METHODS, MODULE, mcp_stub
from emceepee.codemode.failures import ScriptFailure
from emceepee.codemode.python_names import module_names, python_names
from emceepee.codemode.stubs import parameters, stub, type_budget
from emceepee.errors import DisabledBackend, EmceepeeError
from emceepee.futures import let_others_run
from emceepee.sessions.session_servers import SessionServers
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from pydantic_monty import ExternalModule

PACKAGE = "servers"
MOST_FUNCTIONS = 500  # of all servers, in one script
_WORDS = re.compile(r"\w+")
_HEADER = "from typing import Any, Literal\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleFunction:
    """A tool, as a function of its server's module."""

    server: str
    tool: str
    names: Mapping[str, str]  # renamed parameters: Python name to server name
    droppable: frozenset[str]  # parameters whose None means "not given"

    def arguments(self, given: JsonObject) -> JsonObject:
        """Return the arguments under the server's names, without dropped ones."""
        return {
            self.names.get(name, name): value
            for name, value in given.items()
            if value is not None or name not in self.droppable
        }


@dataclass(slots=True)
class ServerModules:
    """The modules of the servers that a script names. Functions are found by their dotted names."""

    functions: dict[str, ModuleFunction] = field(default_factory=dict)
    stubs: dict[str, str] = field(default_factory=dict)  # by module; only a script that is checked needs them
    hints: dict[str, str] = field(default_factory=dict)  # by names that cannot be imported: what to do instead

    def find(self, dotted: str) -> ModuleFunction | None:
        return self.functions.get(dotted)

    def external(self) -> "dict[str, ExternalModule]":
        """Return the modules in the sandbox's format, with `mcp` beside them.

        The functions are placeholders that are never called: the sandbox reports each call instead.
        """
        from pydantic_monty import ExternalModule

        members: dict[str, dict[str, Any]] = {name: {} for name in self.stubs}
        for dotted in self.functions:
            _, module, function = dotted.split(".")
            members.setdefault(module, {})[function] = _never_called
        return {
            MODULE: ExternalModule(dict.fromkeys(METHODS, _never_called), stubs=mcp_stub()),
            PACKAGE: ExternalModule(
                {
                    name: ExternalModule(functions, stubs=self.stubs.get(name, _HEADER))
                    for name, functions in members.items()
                },
                stubs="",
            ),
        }

    def to_record(self) -> JsonObject:
        return {
            dotted: [function.server, function.tool, dict(function.names), sorted(function.droppable)]
            for dotted, function in self.functions.items()
        }

    @classmethod
    def from_record(cls, record: JsonObject) -> "ServerModules":
        """Raises: ValueError, TypeError."""
        functions = {
            dotted: ModuleFunction(server=server, tool=tool, names=names, droppable=frozenset(droppable))
            for dotted, (server, tool, names, droppable) in record.items()
        }
        return cls(functions)


def _never_called() -> None: ...


async def modules_for(code: str, servers: SessionServers) -> ServerModules:
    """Build the modules of the servers that the code names. Raises: ScriptFailure."""
    words = set(_WORDS.findall(code))
    if PACKAGE not in words:
        return ServerModules()
    connections = list(servers.connections.values())
    names = module_names(connection.spec.name for connection in connections)
    wanted = [connection for connection in connections if names[connection.spec.name] in words]
    modules = ServerModules(
        hints={module: str(error) for module, error in _disabled_modules(servers).items() if module in words}
        | {
            name: f"The module of the server {name} is {module}: from servers import {module}"
            for name, module in names.items()
            if name != module and name in words
        }
    )
    budget = type_budget()
    for connection, tools in zip(wanted, await asyncio.gather(*map(_tools_of, wanted)), strict=True):
        _add_module(modules, names[connection.spec.name], connection.spec.name, tools, words, budget)
        await let_others_run()
    return modules


def _disabled_modules(servers: SessionServers) -> dict[str, DisabledBackend]:
    """Return why each disabled server has no module, by the name of the module that it would have."""
    errors = servers.disabled_errors()
    return {module: errors[name] for name, module in module_names(errors).items()}


async def _tools_of(connection: Connection) -> list[JsonObject]:
    try:
        return await connection.lists.entries(ListKind.TOOLS)
    except EmceepeeError as error:
        name = connection.spec.name
        raise ScriptFailure(
            "ImportError",
            f'The tools of server "{name}" cannot be listed: {error} Without an import, mcp.call_tool("{name}", …) '
            "waits for it.",
        ) from None


def _add_module(
    modules: ServerModules,
    module: str,
    server: str,
    tools: list[JsonObject],
    words: AbstractSet[str],
    budget: Budget,
) -> None:
    """Add only the functions that the code names, because a server may have thousands of tools."""
    by_name = {str(tool["name"]): tool for tool in tools if isinstance(tool.get("name"), str)}
    lines = []
    for name, python_name in python_names(by_name).items():
        if python_name not in words:
            continue
        if len(modules.functions) == MOST_FUNCTIONS:
            raise ScriptFailure("ImportError", f"The script names more than {MOST_FUNCTIONS} tools of servers.")
        schema = by_name[name].get("inputSchema")
        taken = parameters(schema, budget)
        modules.functions[f"{PACKAGE}.{module}.{python_name}"] = ModuleFunction(
            server=server,
            tool=name,
            names={item.python_name: item.name for item in taken if item.python_name != item.name},
            droppable=frozenset(item.python_name for item in taken if not item.is_required and not item.takes_null),
        )
        lines.append(stub(python_name, schema, taken))
    modules.stubs[module] = _HEADER + "\n".join(lines) + "\n"
