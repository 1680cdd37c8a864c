"""Arguments that the configured limits bound. The listed schema shows the same bounds that the check enforces."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from emceepee.state.limits import Limits
from emceepee.tools.declaration.declaration import Tool
from emceepee.tools.declaration.parameter_schema import compact_schema

_DEFAULTS = Limits()
_REQUIRED: Any = ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedBy:
    """Marks a field. The limit `most` bounds it, and the limit `names` replaces {} in its description."""

    description: str
    names: str | None = None
    most: str | None = None
    least: int = 0

    def field(self, default: Any = _REQUIRED, limits: Limits = _DEFAULTS) -> Any:
        """Return the field with these limits. Durations are in milliseconds."""
        if self.most is None:
            return Field(default, description=self._describe(limits, None))
        most = _milliseconds(limits, self.most)
        default = min(default, most) if isinstance(default, int) else default
        return Field(default, ge=min(self.least, most), le=most, description=self._describe(limits, most))

    def is_default(self, limits: Limits) -> bool:
        names = [name for name in (self.most, self.names) if name is not None]
        return all(getattr(limits, name) == getattr(_DEFAULTS, name) for name in names)

    def _describe(self, limits: Limits, most: int | None) -> str:
        if self.names is None:
            return self.description
        if self.names.endswith("_bytes"):
            return self.description.format(f"{getattr(limits, self.names) / 1024:g} kB")
        named = _milliseconds(limits, self.names)
        return self.description.format(named if most is None else min(named, most))


def fit_tools(tools: Iterable[Tool], limits: Limits) -> list[Tool]:
    """Return the tools with these limits. A tool whose limits have their defaults is returned unchanged."""
    return [_fitted(tool, limits) for tool in tools]


def _fitted(tool: Tool, limits: Limits) -> Tool:
    changed = {
        name: (Annotated[field.annotation, mark], mark.field(field.default, limits))
        for name, field in tool.params.model_fields.items()
        if (mark := _mark_of(field)) is not None and not mark.is_default(limits)
    }
    if not changed:
        return tool
    # The type checker does not know the new fields, but all of them exist in the base model.
    params: type[BaseModel] = create_model(  # type: ignore[call-overload]
        tool.params.__name__, __base__=tool.params, __doc__=tool.params.__doc__, **changed
    )
    return replace(tool, params=params, input_schema=compact_schema(params))


def _mark_of(field: FieldInfo) -> LimitedBy | None:
    return next((item for item in field.metadata if isinstance(item, LimitedBy)), None)


def _milliseconds(limits: Limits, name: str) -> int:
    seconds: float = getattr(limits, name)
    return round(seconds * 1000)
