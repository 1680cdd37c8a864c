"""Alternative names of arguments and tools. They are accepted but not in any schema, so they cost no context."""

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
    others: Mapping[str, str]  # from each alias to its argument
    objects: tuple[str, ...]  # arguments that may also be a JSON object as text

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
        """Return the arguments with aliases replaced, or the same object if it has none, as in most calls.

        An alias stays if its argument is also given and differs. `Tool.check` then rejects it.
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
        """Parse a JSON object given as text for an object argument. Return any other value unchanged."""
        if name not in self.objects or not isinstance(value, str):
            return value
        try:
            parsed = decode(value.encode("utf-8", "replace"))
        except ValueError:
            return value
        return parsed if isinstance(parsed, dict) else value


def _other_names(name: str, item: JsonObject) -> list[str]:
    """Return the aliases of an argument: its name in replies (taskId), and its name in other tools."""
    first, *rest = name.split("_")
    found = [first + "".join(word.capitalize() for word in rest)]
    is_name = name in ("server", "name") and "default" not in item  # with a default, it is a pattern
    is_object = name in ("args", "arguments") and item.get("type") == "object"
    return [*found, _INSTEAD[name]] if is_name or is_object else found


def own_call(params: JsonObject) -> JsonObject | None:
    """Return the params of a call to one of emceepee's own tools through execute_tool, or None if it is no such call.

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
            return {"name": outer.get("tool"), "arguments": inner}  # the caller rejects it, because it is no object
    if SESSION_ARGUMENT in outer and (inner is None or isinstance(inner, dict)):
        inner = {SESSION_ARGUMENT: outer[SESSION_ARGUMENT], **(inner or {})}
    return {"name": outer.get("tool"), "arguments": inner}
