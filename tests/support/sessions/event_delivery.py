"""Events taken as a reply takes them, but all at once."""

from emceepee.sessions.events.activity import Activity
from emceepee.state.events import Delivery, Outbox


def take(source: Outbox | Activity, *, after: str | None = None, most: int | None = None) -> Delivery:
    """Take undelivered events, or all events after one, and mark them as delivered."""
    found = source.undelivered() if after is None else source.after(after)
    count = len(found.events) if most is None else min(most, len(found.events))
    source.deliver(found, count)
    return Delivery(found.events[:count], found.dropped, found.cursor_lost)
