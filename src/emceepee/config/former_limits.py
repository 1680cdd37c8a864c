"""Limits of earlier versions that are constants now. A file that sets one still loads, with a warning."""

from typing import NamedTuple


class FormerLimit(NamedTuple):
    """The value that always applies, and its meaning."""

    value: float
    meaning: str

    def describe(self, name: str) -> str:
        """Return the value with the unit in which the file specified it."""
        unit = next((f" {unit}" for unit in ("seconds", "bytes") if unit in name), "")
        return f"{self.value:,.15g}{unit}"


# The values repeat the constants, because this room imports few modules. A test compares the two.
FORMER_LIMITS = {
    "health_answer_seconds": FormerLimit(10, "Time for a server to answer a health check."),
    "list_pages": FormerLimit(1000, "Pages of one list of a server."),
    "list_entries": FormerLimit(50_000, "Entries of one list of a server."),
    "list_bytes": FormerLimit(16 << 20, "Size of one list of a server."),
    "subscriptions_per_server": FormerLimit(100, "Subscribed resources of one server, per session."),
    "event_bytes_per_session": FormerLimit(8 << 20, "Total size of stored events, per session."),
    "event_bytes_in_all": FormerLimit(64 << 20, "Total size of stored events in all sessions together."),
    "event_notice_bytes": FormerLimit(2048, "Largest event in a notice. A larger event is cut."),
    "activity_bytes": FormerLimit(64 << 10, "Largest answer of `await_activity`, unless one event alone is larger."),
    "result_part_bytes": FormerLimit(
        16 << 10, "Largest part that `read_result` returns if the caller specifies no limit."
    ),
    "question_bytes_per_session": FormerLimit(32 << 20, "Total size of open questions, per session."),
    "question_rounds": FormerLimit(50, "Rounds of questions in one call to a 2026-07-28 server."),
    "servers_per_principal": FormerLimit(100, "Servers that the callers of one principal may add."),
    "waiting_per_session": FormerLimit(2000, "Requests that wait for events at once, per session."),
    "unsaved_records": FormerLimit(
        10_000, "Changes that may wait while state cannot be saved. Beyond that, no new session starts."
    ),
    "replay_bytes": FormerLimit(
        32 << 20, "Total size of messages stored for callers that resume a broken stream, per connection."
    ),
    "calls_per_script": FormerLimit(100, "Calls of one script."),
    "script_code_bytes": FormerLimit(64 << 10, "Longest script."),
    "scripts_per_session": FormerLimit(10, "Running and waiting scripts, per session."),
    "scripts_per_principal": FormerLimit(100, "Running and waiting scripts, per principal."),
    "scripts_in_all": FormerLimit(200, "Running and waiting scripts in all sessions together."),
    "parked_bytes_per_principal": FormerLimit(128 << 20, "Total size of waiting scripts, per principal."),
    "parked_bytes_in_all": FormerLimit(256 << 20, "Total size of waiting scripts in all sessions together."),
}
