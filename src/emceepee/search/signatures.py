"""An entry on one line, like a call: github.create_issue(owner, repo, title, body?), with its purpose."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

from emceepee.search.documents import Document, EntryType
from emceepee.search.text import first_sentence, one_line
from emceepee.wire.json_types import JsonObject

MOST_SHOWN = 16  # arguments
MOST_LOOKED_AT = 1000  # arguments; required ones among them are shown first
LONGEST_NAME = 120
LONGEST_ARGUMENT = 60
DASH = "\u2013"


def signature(document: Document, shape: str | None = None, module: str | None = None) -> str:
    """Required arguments come first. `shape` is that of an earlier result, `module` the server's module in scripts."""
    line = _call(document, module or document.server)
    if shape is not None:
        line += f" → {shape}"
    summary = first_sentence(document.description)
    return f"{line} {DASH} {summary}" if summary else line


def _call(document: Document, server: str) -> str:
    name = one_line(document.name, LONGEST_NAME)
    match document.type:
        case EntryType.TOOL:
            return f"{server}.{name}({', '.join(_shown(_tool_arguments(document.entry)))})"
        case EntryType.PROMPT:
            return f"{document.server}.{name}({', '.join(_shown(_prompt_arguments(document.entry)))})"
        case EntryType.SERVER:
            return name
        case _:
            return f"{document.server} {name}"


def _shown(arguments: Iterator[tuple[str, bool]]) -> list[str]:
    ordered = sorted(arguments, key=lambda argument: not argument[1])
    shown = [one_line(name, LONGEST_ARGUMENT) + ("" if needed else "?") for name, needed in ordered[:MOST_SHOWN]]
    return shown + ["…"] * (len(ordered) > MOST_SHOWN)


def _tool_arguments(entry: JsonObject) -> Iterator[tuple[str, bool]]:
    schema: Any = entry.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(properties, dict):
        return
    required = schema.get("required")
    needed = {name for name in required if isinstance(name, str)} if isinstance(required, list) else set()
    yield from ((name, name in needed) for name in islice(properties, MOST_LOOKED_AT))


def _prompt_arguments(entry: JsonObject) -> Iterator[tuple[str, bool]]:
    arguments = entry.get("arguments")
    for argument in arguments[:MOST_LOOKED_AT] if isinstance(arguments, list) else ():
        if isinstance(argument, dict) and isinstance(argument.get("name"), str):
            yield argument["name"], argument.get("required") is True
