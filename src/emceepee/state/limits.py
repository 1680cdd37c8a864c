"""Every limit, declared once: its default, its meaning, its range, and when a change takes effect.

The configuration file uses the same names. It rejects values outside the range, because emceepee cannot work with them.
"""

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

SHORTEST, LONGEST = (
    0.001,
    366 * 86_400.0,
)  # seconds: a date plus a year is still a valid date, plus a century perhaps not
MOST, LEAST_BYTES, MOST_BYTES = 10**9, 1 << 10, 1 << 40


class Range(NamedTuple):
    """The values that a limit can have. With `or_zero`, 0 is also valid, although it is below `least`."""

    least: float
    most: float
    or_zero: bool = False

    def allows(self, value: float) -> bool:
        return self.least <= value <= self.most or (self.or_zero and value == 0)  # NaN satisfies neither

    def describe(self, kind: str) -> str:
        """Return a text such as "a number from 1 to 10" for the kind "a number"."""
        return f"{'0 or ' if self.or_zero else ''}{kind} from {self.least:,.15g} to {self.most:,.15g}"


def _seconds(
    default: float,
    meaning: str,
    *,
    least: float = SHORTEST,
    most: float = LONGEST,
    or_zero: bool = False,
    live: bool = False,
) -> float:
    return field(default=float(default), metadata=_metadata(meaning, Range(least, most, or_zero), live=live))


def _count(default: int, meaning: str, *, least: int = 1, most: int = MOST, live: bool = False) -> int:
    return field(default=default, metadata=_metadata(meaning, Range(least, most), live=live))


def _bytes(default: int, meaning: str, *, least: int = LEAST_BYTES, or_zero: bool = False, live: bool = False) -> int:
    return field(default=default, metadata=_metadata(meaning, Range(least, MOST_BYTES, or_zero), live=live))


def _metadata(meaning: str, allowed: Range, *, live: bool) -> dict[str, Any]:
    return {"meaning": meaning, "range": allowed, "live": live}


@dataclass(slots=True, kw_only=True)
class Limits:
    """Durations are seconds, and sizes are bytes.

    All parts of an installation share one object. `update` changes its live limits; nothing else assigns to it. A limit
    may be `live` only if the code reads it here for each use, and if no text sent to a caller contains it.
    """

    # Waiting for servers.
    connect_seconds: float = _seconds(30, "Time for a server to start and answer the handshake.", least=0.1, live=True)
    list_patience_seconds: float = _seconds(
        3, "Time that a list over several servers waits for slow servers.", or_zero=True, live=True
    )
    request_seconds: float = _seconds(
        60, "Time for a server to answer a request for a list, a completion, or a log level.", least=0.1, live=True
    )
    call_seconds: float = _seconds(
        120, "Time to wait for a call if the caller specifies none.", or_zero=True, live=True
    )
    quiet_call_seconds: float = _seconds(
        50,
        "Time to wait for a call, or in `get_task_result`, if the caller specifies none and did not ask for progress.",
        or_zero=True,
    )
    longest_call_seconds: float = _seconds(900, "Longest wait that a caller may ask for.", least=1)
    http_retry_seconds: float = _seconds(
        1, "Delay before the first attempt to reconnect to a lost HTTP server. Each further delay doubles.", least=0.01
    )
    longest_http_retry_seconds: float = _seconds(
        180, "Longest delay between attempts to reconnect to an HTTP server.", least=0.01
    )
    stable_seconds: float = _seconds(
        60, "Time that a server must stay connected before its count of attempts restarts at zero.", or_zero=True
    )
    health_check_seconds: float = _seconds(
        120,
        "Interval between checks that a connected server still answers. 0 turns the checks off.",
        least=1,
        or_zero=True,
    )
    idle_stop_seconds: float = _seconds(
        0,
        "Time without use after which a server stops until its next use. With 0, servers do not stop.",
        least=0.1,
        or_zero=True,
    )
    # Output of servers.
    notifications_per_server: int = _count(100, "Notifications stored for `get_notifications`, per server.", least=0)
    log_lines_per_server: int = _count(500, "Log lines stored for `get_logs`, per server.", least=0)
    buffered_item_bytes: int = _bytes(
        1 << 20, "Largest notification or log line that is stored whole. A larger one is cut."
    )
    buffered_bytes_per_server: int = _bytes(
        8 << 20, "Total size of stored notifications and log lines, per server. The oldest are dropped first."
    )
    buffered_bytes_per_session: int = _bytes(
        32 << 20, "Total size of stored notifications and log lines of all servers, per session."
    )
    line_bytes: int = _bytes(
        64 << 20, "Longest line on stdio, and largest response or event of an HTTP server.", least=64 << 10
    )
    requests_per_link: int = _count(100, "Requests from a server that are served at once, per connection.")
    connections_per_origin: int = _count(2000, "Connections to one HTTP origin, per principal.", least=10)
    connections_in_all: int = _count(
        8000,
        "Connections to HTTP servers, in total, but at most half of the file descriptors that the process may open.",
        least=10,
    )
    # The size of replies.
    full_list_bytes: int = _bytes(
        32 << 10, "Largest answer of `list_tools` with schemas if the caller does not ask for schemas.", least=1
    )
    list_reply_bytes: int = _bytes(
        100_000, "Largest answer of a tool that lists. A cursor leads to the rest.", live=True
    )
    searched_entries: int = _count(20_000, "Entries that `codemode_search` can find, per session.")
    search_bytes: int = _bytes(16 << 10, "Largest answer of `codemode_search`.", live=True)
    notice_bytes: int = _bytes(
        8192, "Largest block of events in a reply. Further events come with the next reply.", least=512, live=True
    )
    largest_result_bytes: int = _bytes(
        0,
        "Largest result that a reply contains whole if the caller does not specify a size. A larger result is replaced "
        "by its head and a handle. With 0, every result comes whole.",
        least=256,
        or_zero=True,
    )
    # Events and requests.
    events_per_session: int = _count(
        1000, "Events stored per session. When it is exceeded, the oldest tenth is dropped.", least=10
    )
    event_seconds: float = _seconds(
        1800, "Time that delivered events are stored. Undelivered events stay as long as their session.", or_zero=True
    )
    events_in_all: int = _count(10_000, "Events stored in all sessions together.", least=10)
    requests_per_session: int = _count(
        100, "Requests stored per session for the console's waterfall. With 0, none are stored.", least=0
    )
    requests_in_all: int = _count(1000, "Requests stored for the waterfall in all sessions together.")
    # Tasks and results.
    tasks_per_session: int = _count(100, "Running calls and tasks, per session.", live=True)
    task_ttl_seconds: float = _seconds(600, "Time that a task may run if the caller specifies none.", least=1)
    longest_task_ttl_seconds: float = _seconds(1800, "Longest time to live that a caller may ask for.", least=1)
    task_retention_seconds: float = _seconds(
        300, "Time that a finished task and its result are stored.", least=0.1, live=True
    )
    task_bytes_per_session: int = _bytes(
        32 << 20, "Total size of finished tasks, per session. The oldest tasks lose their results first."
    )
    task_bytes_in_all: int = _bytes(128 << 20, "Total size of finished tasks in all sessions together.")
    results_per_session: int = _count(
        50, "Large results stored per session for `read_result`. The oldest are dropped first.", live=True
    )
    result_bytes_per_session: int = _bytes(128 << 20, "Total size of stored large results, per session.")
    result_bytes_in_all: int = _bytes(
        512 << 20, "Total size of stored large results in all sessions of a process together."
    )
    # Questions.
    question_seconds: float = _seconds(
        600, "Time that a question from a server waits for an answer.", least=1, live=True
    )
    modern_question_seconds: float = _seconds(
        540,
        "Time that a question from a 2026-07-28 server waits for an answer. Such servers keep their own state for ten "
        "minutes.",
        least=1,
        live=True,
    )
    questions_per_server: int = _count(20, "Open questions of one server, per session.", live=True)
    questions_per_session: int = _count(100, "Open questions of all servers, per session.")
    # Server processes.
    processes_in_all: int = _count(250, "Running server processes, in all sessions together.")
    processes_per_principal: int = _count(200, "Running server processes, in all sessions of one principal.")
    process_idle_seconds: float = _seconds(
        300,
        "Time after which the stdio servers of an idle HTTP session stop until their next use. With 0, they do not "
        "stop.",
        least=0.1,
        or_zero=True,
        live=True,
    )
    # Sessions.
    sessions_per_principal: int = _count(
        2000, "Sessions per principal. When it is exceeded, the session that was idle longest ends.", live=True
    )
    sessions_in_all: int = _count(
        10_000,
        "Sessions in total. When it is exceeded, a session of the principal with the most sessions ends.",
        live=True,
    )
    connections_per_session: int = _count(
        100, "Handshake connections per named session. When it is exceeded, the connection that was idle longest ends."
    )
    session_idle_seconds: float = _seconds(
        1800, "Time after which an unused session sleeps: its servers are disconnected.", least=1, live=True
    )
    session_kept_seconds: float = _seconds(
        86_400, "Time after which an unused session is deleted.", least=10, live=True
    )
    unused_session_seconds: float = _seconds(
        300, "Time after which an idle session in which no tool was ever called is deleted.", least=10, live=True
    )
    replica_lease_seconds: float = _seconds(
        5, "Time after which other replicas may take over the sessions of an unresponsive replica.", least=1, most=3600
    )
    replay_messages: int = _count(
        1000, "Messages stored per handshake connection, for a caller that resumes a broken stream."
    )
    replay_seconds: float = _seconds(300, "Time that these messages are stored.", least=1)
    # HTTP requests.
    request_body_bytes: int = _bytes(4 << 20, "Largest body of an HTTP request.", least=4 << 10)
    request_head_bytes: int = _bytes(
        64 << 10,
        "Largest head of an HTTP request: its request line and headers. The trailers have the same limit.",
        least=4 << 10,
    )
    request_headers: int = _count(200, "Headers per HTTP request, and as many trailers.", least=32)
    request_head_seconds: float = _seconds(10, "Time for the head of an HTTP request to arrive.", least=1)
    request_body_seconds: float = _seconds(30, "Time for the body of an HTTP request to arrive.", least=1)
    idle_connection_seconds: float = _seconds(
        75, "Time after which a caller's connection without a request is closed.", least=1
    )
    unread_answer_seconds: float = _seconds(
        30, "Time for which a caller may read nothing of an answer before its connection is closed.", least=1
    )
    unread_bytes_in_all: int = _bytes(
        128 << 20,
        "Total size of answers that callers have not read. When it is exceeded, the slowest connections are closed.",
        least=1 << 20,
    )
    pipelined_requests: int = _count(
        16, "Requests that wait on a connection for earlier requests. A connection with more is closed."
    )
    batch_messages: int = _count(50, "Messages per JSON-RPC batch.")
    caller_connections: int = _count(
        10_000,
        "Connections of callers. Idle connections are closed beyond this number, or beyond three quarters of the "
        "process's file descriptors.",
        least=2,
    )
    # Recordings.
    recording_bytes: int = _bytes(
        32 << 20, "Largest recording of a server. A recording ends when it reaches this size."
    )
    recordings_in_all: int = _count(4, "Recordings started in the console that are in memory at once.")
    # Scripts.
    script_compute_seconds: float = _seconds(
        10, "Time that a script may compute. Time that it waits does not count.", least=0.1
    )
    script_memory_bytes: int = _bytes(32 << 20, "Memory that a script may use.", least=4 << 20)
    script_result_bytes: int = _bytes(1 << 20, "Largest result of a script.")
    script_log_bytes: int = _bytes(64 << 10, "Size of a script's output and log that the reply contains.", least=256)
    script_workers: int = _count(
        4, "Processes that run scripts at once. Further scripts wait for a free process.", most=1000
    )
    script_workers_per_principal: int = _count(
        3,
        "Processes that run scripts of one principal at once. If there are several, one stays free for other "
        "principals.",
        most=1000,
    )
    # Timers.
    timers_per_session: int = _count(
        100, "Active timers per session. As many finished timers are stored.", least=0, live=True
    )
    longest_timer_seconds: float = _seconds(86_400, "Longest duration of a timer.", least=1)
    timer_retention_seconds: float = _seconds(
        300, "Time that a finished timer is still listed.", or_zero=True, live=True
    )

    def changed_in(self, other: "Limits") -> list[str]:
        """Return the names of the limits whose values differ in `other`."""
        return [item.name for item in fields(self) if getattr(self, item.name) != getattr(other, item.name)]

    def update(self, other: "Limits") -> None:
        """Adopt the live limits of `other`. Every part that shares this object reads the new values."""
        for name in LIVE:
            setattr(self, name, getattr(other, name))


LIVE = frozenset(item.name for item in fields(Limits) if item.metadata["live"])


def range_of(name: str) -> Range:
    """Return the values that the limit can have."""
    found: Range = Limits.__dataclass_fields__[name].metadata["range"]
    return found
