"""Arguments whose largest value the configuration decides: what is listed is what is checked."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model
from pydantic.fields import FieldInfo

from emceepee.state.limits import Limits
from emceepee.tools.declaration import Tool
from emceepee.tools.schema import compact_schema

_USUAL = Limits()


@dataclass(frozen=True, slots=True)
class Bound:
    """Marks a field of milliseconds: `limit` bounds it, and `told` is the limit whose value its description names."""

    limit: str
    told: str | None = None


CALL = Bound("longest_call_seconds", told="quiet_call_seconds")
TASK = Bound("longest_task_ttl_seconds", told="task_ttl_seconds")
TASK_RESULT = Bound("longest_task_ttl_seconds", told="quiet_call_seconds")
ACTIVITY = Bound("longest_call_seconds")
SERVER_CALL = Bound("longest_call_seconds")
TIMER = Bound("longest_timer_seconds")


def usual(bound: Bound) -> int:
    """What holds if nothing is configured."""
    return _milliseconds(_USUAL, bound.limit)


def fit_tools(tools: Iterable[Tool], limits: Limits) -> list[Tool]:
    """The tools as these limits have them; the very same ones where they say nothing new."""
    return [_fitted(tool, limits) for tool in tools]


def _fitted(tool: Tool, limits: Limits) -> Tool:
    changed = {
        name: _bounded(field, bound, limits)
        for name, field in tool.params.model_fields.items()
        if (bound := _bound_of(field)) is not None and not _is_usual(bound, limits)
    }
    if not changed:
        return tool
    # The fields are not known to the checker, but the model is: it has those of its base.
    params: type[BaseModel] = create_model(  # type: ignore[call-overload]
        tool.params.__name__, __base__=tool.params, __doc__=tool.params.__doc__, **changed
    )
    return replace(tool, params=params, input_schema=compact_schema(params))


def _bound_of(field: FieldInfo) -> Bound | None:
    return next((item for item in field.metadata if isinstance(item, Bound)), None)


def _is_usual(bound: Bound, limits: Limits) -> bool:
    names = (bound.limit, bound.told or bound.limit)
    return all(_milliseconds(limits, name) == _milliseconds(_USUAL, name) for name in names)


def _bounded(field: FieldInfo, bound: Bound, limits: Limits) -> tuple[Any, Any]:
    most = _milliseconds(limits, bound.limit)
    least = next(int(item.ge) for item in field.metadata if hasattr(item, "ge"))
    default = min(field.default, most) if isinstance(field.default, int) else field.default
    words = field.description or ""
    if bound.told is not None:
        told = min(_milliseconds(limits, bound.told), most)
        words = words.replace(str(_milliseconds(_USUAL, bound.told)), str(told))
    fresh: Any = Field(default, ge=min(least, most), le=most, description=words)
    return Annotated[field.annotation, bound], fresh


def _milliseconds(limits: Limits, name: str) -> int:
    seconds: float = getattr(limits, name)
    return round(seconds * 1000)
