"""Names of servers, tools, and parameters as Python identifiers, for scripts."""

import builtins
import keyword
import re
from collections.abc import Collection, Iterable

# The modules that scripts can import. The sandbox rejects external modules with these names.
SANDBOX_MODULES = frozenset(
    {
        *("asyncio", "base64", "binascii", "bisect", "collections", "copy", "csv", "dataclasses", "datetime"),
        *("decimal", "functools", "gc", "hashlib", "itertools", "json", "math", "os", "pathlib", "posixpath"),
        *("random", "re", "sys", "time", "tomllib", "typing", "unicodedata"),
    }
)
_OF_THE_SHELL = frozenset({"copyright", "credits", "exit", "help", "license", "quit"})  # not part of the language
TAKEN = SANDBOX_MODULES | (frozenset(dir(builtins)) - _OF_THE_SHELL) | {"mcp"}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")


def python_names(names: Iterable[str], taken: Collection[str] = ()) -> dict[str, str]:
    """Return a distinct Python identifier for each name: `create_issue` for `create-issue`, `from_`, `x3d` for `3d`.

    If two names become equal, the later one gets a number: `create_issue_2`. A name in `taken` gets a trailing `_`.
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    numbers: dict[
        str, int
    ] = {}  # last number used per name: a search from 2 would be quadratic for thousands of equal names
    for name in names:
        choice = wanted = _identifier(name, taken)
        while choice in used:
            numbers[wanted] = number = numbers.get(wanted, 1) + 1
            choice = f"{wanted}_{number}"
        used.add(choice)
        found[name] = choice
    return found


def module_names(servers: Iterable[str]) -> dict[str, str]:
    """Return the module name of each server: `time` becomes `time_`, so that `import time` still works.

    A server whose name needs no change keeps it, regardless of other servers.
    """
    ordered = sorted(servers, key=lambda server: _identifier(server, TAKEN) != server)
    return python_names(ordered, TAKEN)


def _identifier(name: str, taken: Collection[str]) -> str:
    word = _NOT_IN_NAMES.sub("_", name[:200])
    if not word or word[0].isdigit() or word[0] == "_":
        word = f"x{word}"
    return f"{word}_" if keyword.iskeyword(word) or word in taken else word
