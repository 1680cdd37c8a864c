"""The test matrix: `make test` runs the representatives of a test's parameters, `make matrix` runs the others."""

from collections.abc import Collection, Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

Value = TypeVar("Value")


def matrix(values: Iterable[Value], *, representatives: Collection[Value]) -> list[Value | ParameterSet]:
    """Return the values as parameters, with the mark `matrix` on each that is no representative.

    A value that is a tuple has one item for each of several parameters.
    """
    all_values = list(values)
    unknown = [each for each in representatives if each not in all_values]
    assert not unknown, f"unknown representatives: {unknown}"
    return [each if each in representatives else _in_matrix(each) for each in all_values]


def _in_matrix(value: object) -> ParameterSet:
    items = value if isinstance(value, tuple) else (value,)
    return pytest.param(*items, marks=pytest.mark.matrix)
