"""Whether a tool returned what its type says, and so the reference."""

from typing import Any, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from emceepee.sessions.views import Described, ElicitationView
from emceepee.tools.declaration.declaration import OwnResult
from support.sessions.catalogue import CATALOGUE

OPEN = (ElicitationView,)  # servers may say more


def check_result(tool: str, value: Any) -> None:
    """Every key that must be there is, and no other than may be."""
    kind = CATALOGUE[tool].result
    _check(get_args(kind)[0] if get_origin(kind) is OwnResult else kind, value, tool)


def _check(kind: Any, value: Any, path: str) -> None:
    if any(isinstance(mark, Described) for mark in getattr(kind, "__metadata__", ())):
        return  # a server's own shape
    if get_origin(kind) is list:
        assert isinstance(value, list), path
        for index, item in enumerate(value):
            _check(get_args(kind)[0], item, f"{path}[{index}]")
    elif is_typeddict(kind):
        hints = get_type_hints(kind, include_extras=True)
        required = {name for name, hint in hints.items() if get_origin(hint) is not NotRequired}
        assert required <= set(value), f"{path} lacks {required - set(value)}"
        assert kind in OPEN or set(value) <= set(hints), f"{path} has {set(value) - set(hints)} besides"
        for name in hints.keys() & value.keys():
            item, hint = value[name], hints[name]
            _check(get_args(hint)[0] if get_origin(hint) is NotRequired else hint, item, f"{path}.{name}")
    elif isinstance(kind, type) and kind is not Any:
        assert isinstance(value, kind), f"{path} is no {kind.__name__}: {value!r}"
