"""The state that `emceepee top` shows, assembled from feed messages."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from emceepee.cli.watch.console_feed import FeedFrame
from emceepee.wire.json_types import JsonObject

MOST_REQUESTS = 1000  # finished requests are dropped first


@dataclass(slots=True)
class LiveState:
    """Current sessions and their requests, the latest last."""

    sessions: dict[str, JsonObject] = field(default_factory=dict)
    requests: dict[str, JsonObject] = field(default_factory=dict)
    version: str = ""
    principal: str = ""
    is_ready: bool = False
    clock_offset: float = 0.0  # milliseconds by which the server's clock is ahead of ours

    def apply(self, frame: FeedFrame, now_ms: float) -> None:
        data = frame.data
        match frame.name:
            case "hello":
                self.version, self.principal = str(data.get("version")), str(data.get("principal"))
                self.clock_offset = float(data.get("now") or now_ms) - now_ms
            case "session":
                self.sessions[str(data.get("id"))] = data
            case "session_gone":
                gone = str(data.get("id"))
                self.sessions.pop(gone, None)
                self.requests = {key: row for key, row in self.requests.items() if row.get("session") != gone}
            case "requests":
                for row in data.get("rows") or ():
                    self.requests[str(row.get("id"))] = row
                self._forget()
            case "ready":
                self.is_ready = True

    def servers(self) -> list[JsonObject]:
        """Return servers by name: session and connection counts, and the details last reported."""
        found: dict[str, JsonObject] = {}
        for session in self.sessions.values():
            for server in session.get("servers") or ():
                row = found.setdefault(str(server.get("name")), {"sessions": 0, "connected": 0})
                row["sessions"] += 1
                row["connected"] += bool(server.get("connected"))
                row["last"] = server
        calls = Counter(str(row.get("server")) for row in self.requests.values())
        failed = Counter(str(row.get("server")) for row in self.requests.values() if row.get("error"))
        return [{"name": name, **row, "calls": calls[name], "failed": failed[name]} for name, row in found.items()]

    def calls(self, most: int) -> list[JsonObject]:
        """Return requests in progress first, then the latest."""
        rows = sorted(self.requests.values(), key=lambda row: (_has_ended(row), -float(row.get("startedAt") or 0)))
        return rows[:most]

    def tasks(self) -> list[JsonObject]:
        return [task for task in self._all("tasks") if task.get("status") == "working"]

    def questions(self) -> list[JsonObject]:
        return self._all("questions")

    def milliseconds(self, row: JsonObject, now_ms: float) -> float:
        """Return the request's duration, or its duration so far."""
        end = row.get("endedAt")
        end = float(end) if isinstance(end, int | float) else now_ms + self.clock_offset
        return max(0.0, end - float(row.get("startedAt") or end))

    def facts(self, now_ms: float) -> JsonObject:
        """Return the whole state for JSON output."""
        calls = [row | {"durationMs": round(self.milliseconds(row, now_ms), 1)} for row in self.calls(MOST_REQUESTS)]
        return {
            "version": self.version,
            "principal": self.principal,
            "sessions": len(self.sessions),
            "servers": self.servers(),
            "calls": calls,
            "tasks": self.tasks(),
            "questions": self.questions(),
        }

    def _all(self, key: str) -> list[JsonObject]:
        found: list[Any] = [entry for session in self.sessions.values() for entry in session.get(key) or ()]
        return found

    def _forget(self) -> None:
        over = [key for key, row in self.requests.items() if _has_ended(row)]
        for key in over[: max(0, len(self.requests) - MOST_REQUESTS)]:
            del self.requests[key]


def _has_ended(row: JsonObject) -> bool:
    return row.get("endedAt") is not None
