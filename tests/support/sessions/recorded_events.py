"""Events of a scene from a chosen point on."""

from emceepee.wire.json_types import JsonObject
from support.sessions.event_delivery import take
from support.sessions.scene import Scene


class RecordedEvents:
    """All events of a scene from now on, including events that replies delivered."""

    def __init__(self, scene: Scene) -> None:
        self._activity = scene.session.activity
        self._begins_after = self._activity.last_event_id or "the beginning"

    def events(self) -> list[tuple[str, JsonObject]]:
        found = take(self._activity, after=self._begins_after).events
        return [(str(event.type), event.data) for event in found]

    def of_servers(self) -> list[str]:
        return [kind for kind, _ in self.events() if kind.startswith("server")]
