"""Other ways in which an argument or a tool is meant. None of them is in a schema, so they cost no context."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emceepee.surface import OWN_SERVER
from emceepee.wire.codec import decode
from emceepee.wire.json_types import JsonObject

EXECUTE_TOOL, SESSION_ARGUMENT = "execute_tool", "session"
_INSTEAD = {"server": "name", "name": "server", "args": "arguments", "arguments": "args"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aliases:
    """The argument names that one tool accepts."""

    own: frozenset[str]
    others: Mapping[str, str]  # the argument that another name stands for
    objects: tuple[str, ...]  # arguments that may also be given as a text that holds a JSON object

    @classmethod
    def of(cls, schema: JsonObject) -> "Aliases":
        properties: JsonObject = schema["properties"]
        others = {other: name for name, item in properties.items() for other in _other_names(name, item)}
        return cls(
            own=frozenset(properties),
            others={other: name for other, name in others.items() if other not in properties},
            objects=tuple(name for name, item in properties.items() if item.get("type") == "object"),
        )

    def resolve(self, arguments: JsonObject) -> JsonObject:
        """The arguments under their own names; the very same object if there is nothing to do, as for most calls.

        A name that stands for an argument which is also given, and differs, is left for the check to refuse.
        """
        if self.own.issuperset(arguments):
            for name in self.objects:
                if isinstance(arguments.get(name), str):
                    break
            else:
                return arguments
        resolved = {name: self._read(name, value) for name, value in arguments.items() if name in self.own}
        for name, value in arguments.items():
            if name not in self.own:
                meant = self.others.get(name, name)
                value = self._read(meant, value)
                if resolved.setdefault(meant, value) != value:
                    resolved[name] = value
        return resolved

    def _read(self, name: str, value: Any) -> Any:
        """A text that holds a JSON object, where an object is wanted; anything else as it is."""
        if name not in self.objects or not isinstance(value, str):
            return value
        try:
            parsed = decode(value.encode("utf-8", "replace"))
        except ValueError:
            return value
        return parsed if isinstance(parsed, dict) else value


def _other_names(name: str, item: JsonObject) -> list[str]:
    """As replies write it (taskId), and as other tools call the same thing."""
    first, *rest = name.split("_")
    found = [first + "".join(word.capitalize() for word in rest)]
    is_name = name in ("server", "name") and "default" not in item  # a default is a pattern's: it names no server
    is_object = name in ("args", "arguments") and item.get("type") == "object"
    return [*found, _INSTEAD[name]] if is_name or is_object else found


def own_call(params: JsonObject) -> JsonObject | None:
    """The inner call, as the params of a `tools/call`; None if there is none. Every tool can be reached by it.

    Arguments are also found under the aliases of execute_tool, because their values may be private.
    """
    outer = params.get("arguments")
    if params.get("name") != EXECUTE_TOOL or not isinstance(outer, dict):
        return None
    if outer.get("server", outer.get("name")) != OWN_SERVER:
        return None
    inner = outer.get("args", outer.get("arguments"))
    if isinstance(inner, str):
        try:
            inner = decode(inner.encode("utf-8", "replace"))
        except ValueError:
            return {"name": outer.get("tool"), "arguments": inner}  # which is refused: it is no object
    if SESSION_ARGUMENT in outer and (inner is None or isinstance(inner, dict)):
        inner = {SESSION_ARGUMENT: outer[SESSION_ARGUMENT], **(inner or {})}
    return {"name": outer.get("tool"), "arguments": inner}
