"""Convert values of other formats to plain JSON values."""

from math import isfinite
from typing import Any

from emceepee.bounds.budget import Budget

DEEPEST = 50  # levels


class TooDeep(Exception):
    """The value is nested too deeply, or refers to itself."""


def plain(value: Any, budget: Budget, depth: int = 0) -> Any:
    """Return a copy that has only JSON types and shares no parts. YAML aliases can form shared or cyclic values.

    Raises: OverBudget, TooDeep.
    """
    if depth > DEEPEST:
        raise TooDeep
    if isinstance(value, dict):
        budget.spend(sum(len(str(key)) for key in value))
        return {str(key): plain(item, budget, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        budget.spend()
        return [plain(item, budget, depth + 1) for item in value]
    if isinstance(value, str):
        budget.spend(len(value))
        return str(value)
    budget.spend()
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and isfinite(value)):
        return value
    return str(value)
