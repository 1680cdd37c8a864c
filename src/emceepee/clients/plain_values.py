"""Values that formats other than JSON have, as JSON has them."""

from math import isfinite
from typing import Any

from emceepee.bounds.budget import Budget

DEEPEST = 50  # levels


class TooDeep(Exception):
    """Perhaps without end."""


def plain(value: Any, budget: Budget, depth: int = 0) -> Any:
    """A copy of values that JSON has, in which nothing is shared: YAML has aliases, which can lead anywhere.

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
