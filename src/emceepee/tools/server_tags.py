"""Selects servers by the tags in the operator's configuration."""

from collections.abc import Iterable

from emceepee.backends.connection import Connection
from emceepee.errors import InvalidArguments, cut_name, near_names
from emceepee.surface import call_to

TAG = "Only servers with this tag"
MOST_NAMED = 10


def with_tag(connections: Iterable[Connection], tag: str | None) -> list[Connection]:
    """Return the connections with this tag, or all for None. Raises: InvalidArguments if no server has it."""
    everyone = list(connections)
    if tag is None:
        return everyone
    if found := [connection for connection in everyone if tag in connection.spec.tags]:
        return found
    known = sorted({name for connection in everyone for name in connection.spec.tags})
    near = near_names(tag, known)
    hint = f"None has tags; {call_to('list_servers')} shows the servers."
    if near:
        hint = f"Did you mean {' or '.join(near)}?"
    elif known:
        hint = f"There are: {', '.join(known[:MOST_NAMED])}."
    raise InvalidArguments(f'tag: no server has the tag "{cut_name(tag)}". {hint}', details={"near": near})
