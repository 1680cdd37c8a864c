"""Every limit, declared once: its default, its meaning, and the name it has in the configuration file."""

from dataclasses import dataclass, field, fields

SHORTEST, LONGEST = 0.001, 366 * 86_400.0  # seconds: a year can be waited for and added to any date, a century cannot
MOST, MOST_BYTES = 10**9, 1 << 40
LEAST_BYTES = 1 << 10  # of a line or a body: a handshake must fit in
# Here nothing is a sensible wish: no wait, nothing kept, never.
_MAY_BE_ZERO = frozenset(
    {
        *("list_patience_seconds", "call_seconds", "quiet_call_seconds", "stable_seconds", "event_seconds"),
        *("health_check_seconds", "idle_stop_seconds", "timer_retention_seconds", "timers_per_session"),
        *("largest_result_bytes", "notifications_per_server", "log_lines_per_server", "requests_per_session"),
    }
)
# Looked at each time they are used, and in no text that a caller was given: they can change at run time.
LIVE = frozenset(
    {
        *("connect_seconds", "list_patience_seconds", "request_seconds", "call_seconds", "list_reply_bytes"),
        *("search_bytes", "notice_bytes", "event_notice_bytes", "activity_bytes", "tasks_per_session"),
        *("task_retention_seconds", "result_part_bytes", "results_per_session", "question_seconds"),
        *("modern_question_seconds", "questions_per_server", "question_rounds", "waiting_per_session"),
        *("sessions_per_principal", "sessions_in_all", "session_idle_seconds", "session_kept_seconds"),
        *("unused_session_seconds", "timers_per_session", "timer_retention_seconds"),
    }
)


def _limit(default: float, meaning: str) -> float:
    return field(default=float(default), metadata={"meaning": meaning})  # a float: fractions are welcome


def _count(default: int, meaning: str) -> int:
    return field(default=default, metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Durations are seconds, sizes bytes."""

    connect_seconds: float = _limit(30, "how long a backend may take to start and answer the handshake")
    list_patience_seconds: float = _limit(3, "how long a list over several servers waits for the slow ones")
    request_seconds: float = _limit(60, "how long a backend may take for a list, a completion or a log level")
    call_seconds: float = _limit(120, "how long a call is waited for when the caller does not say")
    quiet_call_seconds: float = _limit(50, "the same, and for get_task_result, if the caller asked for no progress")
    longest_call_seconds: float = _limit(900, "the longest wait a caller may ask for")
    http_retry_seconds: float = _limit(1, "the first pause before a lost HTTP server is tried again; it doubles")
    longest_http_retry_seconds: float = _limit(180, "the longest such pause")
    stable_seconds: float = _limit(60, "how long a server must stay up before its count of retries starts anew")
    health_check_seconds: float = _limit(120, "between two checks that a connected server still answers; 0: never")
    health_answer_seconds: float = _limit(10, "how long a check waits for any answer")
    idle_stop_seconds: float = _limit(0, "after which a server that nobody used is stopped until it is; 0: never")
    notifications_per_server: int = _count(100, "notifications kept for get_notifications, per server")
    log_lines_per_server: int = _count(500, "log lines kept for get_logs, per server")
    buffered_item_bytes: int = _count(1 << 20, "the largest notification or log line kept whole; the rest is cut")
    buffered_bytes_per_server: int = _count(8 << 20, "how large all of them may be, per server; the oldest go first")
    buffered_bytes_per_session: int = _count(32 << 20, "the same for all servers together, per session")
    full_list_bytes: int = _count(32 << 10, "the largest answer of list_tools with schemas, if nobody asks for them")
    list_reply_bytes: int = _count(100_000, "the largest answer of a tool that lists; the rest comes with its cursor")
    list_pages: int = _count(1000, "pages of one backend's list that are followed")
    list_entries: int = _count(50_000, "entries of one backend's list")
    list_bytes: int = _count(16 << 20, "how large one backend's list may be")
    searched_entries: int = _count(20_000, "entries of all servers that codemode_search can find, per session")
    search_bytes: int = _count(16 << 10, "the largest answer of codemode_search")
    subscriptions_per_server: int = _count(100, "resources of one server that are followed, per session")
    line_bytes: int = _count(64 << 20, "the longest line on stdio; the largest answer or event of an HTTP backend")
    requests_per_link: int = _count(100, "requests of a server's own that are served at once, per connection")
    connections_per_origin: int = _count(2000, "connections of one principal to one HTTP origin")
    connections_in_all: int = _count(
        8000, "connections to HTTP servers in all; never more than half of what may be open"
    )
    events_per_session: int = _count(1000, "events kept per session; beyond it the oldest tenth goes")
    event_seconds: float = _limit(1800, "how long delivered events are kept; undelivered ones as long as the session")
    events_in_all: int = _count(10_000, "events kept in all sessions together")
    event_bytes_per_session: int = _count(8 << 20, "how large the events of a session may be; the oldest go first")
    event_bytes_in_all: int = _count(64 << 20, "the same for all sessions together; what was delivered goes first")
    notice_bytes: int = _count(8192, "the largest block of events in a reply; what does not fit comes with the next")
    event_notice_bytes: int = _count(2048, "the largest event in it; a larger one is cut, await_activity has it whole")
    activity_bytes: int = _count(65_536, "the largest answer of await_activity, unless one event alone is larger")
    requests_per_session: int = _count(100, "requests kept per session for the waterfall; 0: none")
    requests_in_all: int = _count(1000, "requests kept for the waterfall in all sessions together")
    tasks_per_session: int = _count(100, "calls and tasks at work at once, per session")
    task_ttl_seconds: float = _limit(600, "how long a task may work when the caller does not say")
    longest_task_ttl_seconds: float = _limit(1800, "the longest time to live a caller may ask for")
    task_retention_seconds: float = _limit(300, "how long a finished task and its result are kept")
    task_bytes_per_session: int = _count(
        32 << 20, "how large finished tasks may be, per session; the oldest lose their results first"
    )
    task_bytes_in_all: int = _count(128 << 20, "the same for all sessions together")
    largest_result_bytes: int = _count(
        0, "the largest result that comes whole when the caller does not say; a larger one as head and handle; 0: any"
    )
    result_part_bytes: int = _count(16 << 10, "the largest part that read_result returns when the caller does not say")
    results_per_session: int = _count(50, "large results kept per session to be read in parts; the oldest go first")
    result_bytes_per_session: int = _count(128 << 20, "how large they may be together, per session")
    result_bytes_in_all: int = _count(512 << 20, "the same for all sessions of a process together")
    question_seconds: float = _limit(600, "how long a server's question waits for an answer")
    modern_question_seconds: float = _limit(540, "the same for 2026-07-28 servers, whose own state lasts ten minutes")
    questions_per_server: int = _count(20, "questions of one server that wait at once, per session")
    questions_per_session: int = _count(100, "questions of all servers that wait at once, per session")
    question_bytes_per_session: int = _count(32 << 20, "how large they may be together")
    question_rounds: int = _count(50, "how often one call of a 2026-07-28 server may ask")
    servers_per_principal: int = _count(100, "servers that one principal may add")
    waiting_per_session: int = _count(2000, "requests that wait for something to happen at once, per session")
    processes_in_all: int = _count(250, "server processes that run at once for all sessions together")
    sessions_per_principal: int = _count(2000, "sessions per principal; beyond it the one idle longest is ended")
    sessions_in_all: int = _count(10_000, "sessions in all; beyond it one of the principal that has most is ended")
    connections_per_session: int = _count(
        100, "handshake connections per named session; beyond it the one idle longest is forgotten"
    )
    session_idle_seconds: float = _limit(1800, "after which an unused session sleeps: its servers are disconnected")
    session_kept_seconds: float = _limit(86_400, "after which an unused session is forgotten")
    unused_session_seconds: float = _limit(300, "the same, if no tool was ever called in it")
    unsaved_records: int = _count(
        10_000, "changes that wait while state cannot be saved; beyond it no session begins until it can"
    )
    replica_lease_seconds: float = _limit(
        5, "after which a replica that does not answer any more loses its sessions to the others"
    )
    replay_messages: int = _count(1000, "messages kept per handshake connection, for a caller that comes back for them")
    replay_seconds: float = _limit(300, "how long they are kept")
    replay_bytes: int = _count(32 << 20, "how large they may be together; beyond it the oldest go sooner")
    request_body_bytes: int = _count(4 << 20, "the largest HTTP request body")
    request_head_bytes: int = _count(64 << 10, "the largest HTTP request head: address and headers together")
    request_headers: int = _count(200, "headers per HTTP request")
    request_head_seconds: float = _limit(10, "how long the head of an HTTP request may take to arrive")
    request_body_seconds: float = _limit(30, "how long the body of an HTTP request may take to arrive")
    idle_connection_seconds: float = _limit(75, "after which a caller's connection without a request is closed")
    pipelined_requests: int = _count(16, "requests that wait on a connection for earlier ones; then it is closed")
    batch_messages: int = _count(50, "messages per JSON-RPC batch")
    caller_connections: int = _count(
        10_000, "connections of callers; beyond it, or three quarters of the descriptors, idle ones are closed"
    )
    recording_bytes: int = _count(32 << 20, "how large a recording of a server may be; then it ends")
    recordings_in_all: int = _count(4, "recordings begun on the console that are kept in memory at once")
    calls_per_script: int = _count(100, "calls that one script of code mode makes")
    script_compute_seconds: float = _limit(10, "how long a script computes; what it waits for does not count")
    script_memory_bytes: int = _count(32 << 20, "how much memory a script takes")
    script_code_bytes: int = _count(64 << 10, "the longest script")
    script_result_bytes: int = _count(1 << 20, "the largest result of a script")
    script_log_bytes: int = _count(64 << 10, "how much of what a script prints and logs is returned")
    script_workers: int = _count(4, "processes that run scripts at once; other scripts wait for one")
    scripts_per_session: int = _count(10, "scripts that run or wait at once, per session")
    scripts_in_all: int = _count(200, "the same for all sessions together")
    parked_bytes_in_all: int = _count(256 << 20, "how large the scripts that wait may be together")
    timers_per_session: int = _count(100, "active timers per session, and as many that are done")
    longest_timer_seconds: float = _limit(86_400, "the longest timer")
    timer_retention_seconds: float = _limit(300, "how long a timer that is done can still be listed")

    def changed_in(self, other: "Limits") -> list[str]:
        """The names of those that are different there."""
        return [item.name for item in fields(self) if getattr(self, item.name) != getattr(other, item.name)]

    def take_over(self, other: "Limits") -> None:
        """Be as the other in all that is live. Every part of an installation holds this one object, and so sees it."""
        for name in LIVE:
            object.__setattr__(self, name, getattr(other, name))


def range_of(name: str) -> tuple[float, float]:
    """The least and the most that the limit can be set to."""
    if name.endswith("_seconds"):
        least, most = SHORTEST, LONGEST
    elif name.endswith("_bytes"):
        least, most = LEAST_BYTES if name in ("line_bytes", "request_body_bytes") else 1, MOST_BYTES
    else:
        least, most = 1, MOST
    return (0 if name in _MAY_BE_ZERO else least), most
