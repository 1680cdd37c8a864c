"""Names for JSON as it came off the wire, not yet checked by anyone."""

from typing import Any, TypeAlias

JsonValue: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]
