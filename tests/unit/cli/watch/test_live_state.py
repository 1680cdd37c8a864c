"""The state of `emceepee top`, computed from the messages of a feed."""

from typing import Any

from emceepee.cli.watch.console_feed import FeedFrame
from emceepee.cli.watch.live_state import MOST_REQUESTS, LiveState


def told(*frames: tuple[str, dict[str, Any]]) -> LiveState:
    state = LiveState()
    for name, data in frames:
        state.apply(FeedFrame(name, data), 1000.0)
    return state


def session(key: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "session", {"id": key, "servers": [{"name": "one", "connected": key == "a"}], **more}


def test_top_shows_one_row_per_server_across_sessions() -> None:
    rows = [{"id": "1", "session": "a", "server": "one", "error": "no"}, {"id": "2", "session": "b", "server": "one"}]
    state = told(session("a"), session("b"), ("requests", {"rows": rows}))
    [row] = state.servers()
    assert (row["name"], row["sessions"], row["connected"], row["calls"], row["failed"]) == ("one", 2, 1, 2, 1)


def test_a_closed_session_removes_its_requests_from_top() -> None:
    state = told(session("a"), ("requests", {"rows": [{"id": "1", "session": "a"}]}), ("session_gone", {"id": "a"}))
    assert (state.sessions, state.requests) == ({}, {})


def test_running_calls_are_listed_first_and_timed_by_the_remote_clock() -> None:
    rows = [{"id": "1", "startedAt": 5000.0, "endedAt": 5100.0}, {"id": "2", "startedAt": 4000.0}]
    state = told(("hello", {"now": 6000.0}), ("requests", {"rows": rows}))
    assert [row["id"] for row in state.calls(5)] == ["2", "1"]
    assert [state.milliseconds(row, 1500.0) for row in state.calls(5)] == [2500.0, 100.0]


def test_the_oldest_finished_requests_are_dropped_from_top() -> None:
    rows: list[dict[str, Any]] = [{"id": str(number), "endedAt": 1.0} for number in range(MOST_REQUESTS + 5)]
    state = told(("requests", {"rows": [{"id": "open"}, *rows]}))
    assert len(state.requests) == MOST_REQUESTS
    assert "open" in state.requests
    assert "0" not in state.requests
