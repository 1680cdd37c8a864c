"""Every limit, declared once: its default, its meaning, its range, and the name it has in the configuration file.

What is below its least value does not bound emceepee but breaks it, so the configuration refuses it.
"""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

SHORTEST, LONGEST = 0.001, 366 * 86_400.0  # seconds: a year can be waited for and added to any date, a century cannot
MOST, LEAST_BYTES, MOST_BYTES = 10**9, 1 << 10, 1 << 40
# Looked at each time they are used, and in no text that a caller was given: they can change at run time.
LIVE = frozenset(
    {
        *("connect_seconds", "list_patience_seconds", "request_seconds", "call_seconds", "list_reply_bytes"),
        *("search_bytes", "notice_bytes", "event_notice_bytes", "activity_bytes", "tasks_per_session"),
        *("task_retention_seconds", "result_part_bytes", "results_per_session", "question_seconds"),
        *("modern_question_seconds", "questions_per_server", "question_rounds", "waiting_per_session"),
        *("sessions_per_principal", "sessions_in_all", "session_idle_seconds", "session_kept_seconds"),
        *("unused_session_seconds", "process_idle_seconds", "timers_per_session", "timer_retention_seconds"),
    }
)


class Range(NamedTuple):
    """The values that a limit can be set to. With `or_zero` 0 as well, though it is below the least."""

    least: float
    most: float
    or_zero: bool = False

    def allows(self, value: float) -> bool:
        return self.least <= value <= self.most or (self.or_zero and value == 0)  # neither holds of NaN

    def describe(self, kind: str) -> str:
        """Such as "a number from 1 to 10" for the kind "a number"."""
        return f"{'0 or ' if self.or_zero else ''}{kind} from {self.least:,.15g} to {self.most:,.15g}"


def _seconds(
    default: float, meaning: str, *, least: float = SHORTEST, most: float = LONGEST, or_zero: bool = False
) -> float:
    # A float: fractions are welcome.
    return field(default=float(default), metadata=_metadata(meaning, Range(least, most, or_zero)))


def _count(default: int, meaning: str, *, least: int = 1, most: int = MOST) -> int:
    return field(default=default, metadata=_metadata(meaning, Range(least, most)))


def _bytes(default: int, meaning: str, *, least: int = LEAST_BYTES, or_zero: bool = False) -> int:
    return field(default=default, metadata=_metadata(meaning, Range(least, MOST_BYTES, or_zero)))


def _metadata(meaning: str, allowed: Range) -> dict[str, Any]:
    return {"meaning": meaning, "range": allowed}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Durations are seconds, sizes bytes."""

    connect_seconds: float = _seconds(30, "how long a backend may take to start and answer the handshake", least=0.1)
    list_patience_seconds: float = _seconds(
        3, "how long a list over several servers waits for the slow ones", or_zero=True
    )
    request_seconds: float = _seconds(
        60, "how long a backend may take for a list, a completion or a log level", least=0.1
    )
    call_seconds: float = _seconds(120, "how long a call is waited for when the caller does not say", or_zero=True)
    quiet_call_seconds: float = _seconds(
        50, "the same, and for get_task_result, if the caller asked for no progress", or_zero=True
    )
    longest_call_seconds: float = _seconds(900, "the longest wait a caller may ask for", least=1)
    http_retry_seconds: float = _seconds(
        1, "the first pause before a lost HTTP server is tried again; it doubles", least=0.01
    )
    longest_http_retry_seconds: float = _seconds(180, "the longest such pause", least=0.01)
    stable_seconds: float = _seconds(
        60, "how long a server must stay up before its count of retries starts anew", or_zero=True
    )
    health_check_seconds: float = _seconds(
        120, "between two checks that a connected server still answers; 0: never", least=1, or_zero=True
    )
    health_answer_seconds: float = _seconds(10, "how long a check waits for any answer", least=0.1)
    idle_stop_seconds: float = _seconds(
        0, "after which a server that nobody used is stopped until it is; 0: never", least=0.1, or_zero=True
    )
    notifications_per_server: int = _count(100, "notifications kept for get_notifications, per server", least=0)
    log_lines_per_server: int = _count(500, "log lines kept for get_logs, per server", least=0)
    buffered_item_bytes: int = _bytes(1 << 20, "the largest notification or log line kept whole; the rest is cut")
    buffered_bytes_per_server: int = _bytes(8 << 20, "how large all of them may be, per server; the oldest go first")
    buffered_bytes_per_session: int = _bytes(32 << 20, "the same for all servers together, per session")
    full_list_bytes: int = _bytes(
        32 << 10, "the largest answer of list_tools with schemas, if nobody asks for them", least=1
    )
    list_reply_bytes: int = _bytes(100_000, "the largest answer of a tool that lists; the rest comes with its cursor")
    list_pages: int = _count(1000, "pages of one backend's list that are followed")
    list_entries: int = _count(50_000, "entries of one backend's list")
    list_bytes: int = _bytes(16 << 20, "how large one backend's list may be")
    searched_entries: int = _count(20_000, "entries of all servers that codemode_search can find, per session")
    search_bytes: int = _bytes(16 << 10, "the largest answer of codemode_search")
    subscriptions_per_server: int = _count(100, "resources of one server that are followed, per session")
    line_bytes: int = _bytes(
        64 << 20, "the longest line on stdio; the largest answer or event of an HTTP backend", least=64 << 10
    )
    requests_per_link: int = _count(100, "requests of a server's own that are served at once, per connection")
    connections_per_origin: int = _count(2000, "connections of one principal to one HTTP origin", least=10)
    connections_in_all: int = _count(
        8000, "connections to HTTP servers in all; never more than half of what may be open", least=10
    )
    events_per_session: int = _count(1000, "events kept per session; beyond it the oldest tenth goes", least=10)
    event_seconds: float = _seconds(
        1800, "how long delivered events are kept; undelivered ones as long as the session", or_zero=True
    )
    events_in_all: int = _count(10_000, "events kept in all sessions together", least=10)
    event_bytes_per_session: int = _bytes(
        8 << 20, "how large the events of a session may be; the oldest go first", least=4 << 10
    )
    event_bytes_in_all: int = _bytes(
        64 << 20, "the same for all sessions together; what was delivered goes first", least=4 << 10
    )
    notice_bytes: int = _bytes(
        8192, "the largest block of events in a reply; what does not fit comes with the next", least=512
    )
    event_notice_bytes: int = _bytes(
        2048, "the largest event in it; a larger one is cut, await_activity has it whole", least=256
    )
    activity_bytes: int = _bytes(
        65_536, "the largest answer of await_activity, unless one event alone is larger", least=8 << 10
    )
    requests_per_session: int = _count(100, "requests kept per session for the waterfall; 0: none", least=0)
    requests_in_all: int = _count(1000, "requests kept for the waterfall in all sessions together")
    tasks_per_session: int = _count(100, "calls and tasks at work at once, per session")
    task_ttl_seconds: float = _seconds(600, "how long a task may work when the caller does not say", least=1)
    longest_task_ttl_seconds: float = _seconds(1800, "the longest time to live a caller may ask for", least=1)
    task_retention_seconds: float = _seconds(300, "how long a finished task and its result are kept", least=0.1)
    task_bytes_per_session: int = _bytes(
        32 << 20, "how large finished tasks may be, per session; the oldest lose their results first"
    )
    task_bytes_in_all: int = _bytes(128 << 20, "the same for all sessions together")
    largest_result_bytes: int = _bytes(
        0,
        "the largest result that comes whole when the caller does not say; a larger one as head and handle; 0: any",
        least=256,
        or_zero=True,
    )
    result_part_bytes: int = _bytes(
        16 << 10, "the largest part that read_result returns when the caller does not say", least=256
    )
    results_per_session: int = _count(50, "large results kept per session to be read in parts; the oldest go first")
    result_bytes_per_session: int = _bytes(128 << 20, "how large they may be together, per session")
    result_bytes_in_all: int = _bytes(512 << 20, "the same for all sessions of a process together")
    question_seconds: float = _seconds(600, "how long a server's question waits for an answer", least=1)
    modern_question_seconds: float = _seconds(
        540, "the same for 2026-07-28 servers, whose own state lasts ten minutes", least=1
    )
    questions_per_server: int = _count(20, "questions of one server that wait at once, per session")
    questions_per_session: int = _count(100, "questions of all servers that wait at once, per session")
    question_bytes_per_session: int = _bytes(32 << 20, "how large they may be together", least=64 << 10)
    question_rounds: int = _count(50, "how often one call of a 2026-07-28 server may ask")
    servers_per_principal: int = _count(100, "servers that one principal may add")
    waiting_per_session: int = _count(2000, "requests that wait for something to happen at once, per session")
    processes_in_all: int = _count(250, "server processes that run at once for all sessions together")
    processes_per_principal: int = _count(200, "server processes that run at once for the sessions of one principal")
    process_idle_seconds: float = _seconds(
        300,
        "after which the stdio servers of an idle HTTP session stop until it uses them again; 0: never",
        least=0.1,
        or_zero=True,
    )
    sessions_per_principal: int = _count(2000, "sessions per principal; beyond it the one idle longest is ended")
    sessions_in_all: int = _count(10_000, "sessions in all; beyond it one of the principal that has most is ended")
    connections_per_session: int = _count(
        100, "handshake connections per named session; beyond it the one idle longest is forgotten"
    )
    session_idle_seconds: float = _seconds(
        1800, "after which an unused session sleeps: its servers are disconnected", least=1
    )
    session_kept_seconds: float = _seconds(86_400, "after which an unused session is forgotten", least=10)
    unused_session_seconds: float = _seconds(300, "the same, if no tool was ever called in it", least=10)
    unsaved_records: int = _count(
        10_000, "changes that wait while state cannot be saved; beyond it no session begins until it can"
    )
    replica_lease_seconds: float = _seconds(
        5, "after which a replica that does not answer any more loses its sessions to the others", least=1, most=3600
    )
    replay_messages: int = _count(1000, "messages kept per handshake connection, for a caller that comes back for them")
    replay_seconds: float = _seconds(300, "how long they are kept", least=1)
    replay_bytes: int = _bytes(32 << 20, "how large they may be together; beyond it the largest streams lose messages")
    request_body_bytes: int = _bytes(4 << 20, "the largest HTTP request body", least=4 << 10)
    request_head_bytes: int = _bytes(
        64 << 10, "the largest HTTP request head: address and headers together; so too its trailers", least=4 << 10
    )
    request_headers: int = _count(200, "headers per HTTP request, and as many trailers", least=32)
    request_head_seconds: float = _seconds(10, "how long the head of an HTTP request may take to arrive", least=1)
    request_body_seconds: float = _seconds(30, "how long the body of an HTTP request may take to arrive", least=1)
    idle_connection_seconds: float = _seconds(
        75, "after which a caller's connection without a request is closed", least=1
    )
    unread_answer_seconds: float = _seconds(
        30, "how long a caller may read nothing of an answer; then its connection is closed", least=1
    )
    unread_bytes_in_all: int = _bytes(
        128 << 20,
        "how large the answers may be that callers are slow to read; beyond it the slowest connections are closed",
        least=1 << 20,
    )
    pipelined_requests: int = _count(16, "requests that wait on a connection for earlier ones; then it is closed")
    batch_messages: int = _count(50, "messages per JSON-RPC batch")
    caller_connections: int = _count(
        10_000, "connections of callers; beyond it, or three quarters of the descriptors, idle ones are closed", least=2
    )
    recording_bytes: int = _bytes(32 << 20, "how large a recording of a server may be; then it ends")
    recordings_in_all: int = _count(4, "recordings begun on the console that are kept in memory at once")
    calls_per_script: int = _count(100, "calls that one script of code mode makes")
    script_compute_seconds: float = _seconds(
        10, "how long a script computes; what it waits for does not count", least=0.1
    )
    script_memory_bytes: int = _bytes(32 << 20, "how much memory a script takes", least=4 << 20)
    script_code_bytes: int = _bytes(64 << 10, "the longest script")
    script_result_bytes: int = _bytes(1 << 20, "the largest result of a script")
    script_log_bytes: int = _bytes(64 << 10, "how much of what a script prints and logs is returned", least=256)
    script_workers: int = _count(4, "processes that run scripts at once; other scripts wait for one", most=1000)
    script_workers_per_principal: int = _count(
        3, "such processes per principal; one of several always stays free for others", most=1000
    )
    scripts_per_session: int = _count(10, "scripts that run or wait at once, per session")
    scripts_per_principal: int = _count(100, "scripts that run or wait at once, per principal")
    scripts_in_all: int = _count(200, "the same for all sessions together")
    parked_bytes_per_principal: int = _bytes(128 << 20, "total size of waiting scripts, per principal", least=1 << 20)
    parked_bytes_in_all: int = _bytes(256 << 20, "how large the scripts that wait may be together", least=1 << 20)
    timers_per_session: int = _count(100, "active timers per session, and as many that are done", least=0)
    longest_timer_seconds: float = _seconds(86_400, "the longest timer", least=1)
    timer_retention_seconds: float = _seconds(300, "how long a timer that is done can still be listed", or_zero=True)

    def changed_in(self, other: "Limits") -> list[str]:
        """The names of those that are different there."""
        return [item.name for item in fields(self) if getattr(self, item.name) != getattr(other, item.name)]

    def take_over(self, other: "Limits") -> None:
        """Be as the other in all that is live. Every part of an installation holds this one object, and so sees it."""
        for name in LIVE:
            object.__setattr__(self, name, getattr(other, name))


def range_of(name: str) -> Range:
    """The values that the limit can be set to."""
    found: Range = Limits.__dataclass_fields__[name].metadata["range"]
    return found
