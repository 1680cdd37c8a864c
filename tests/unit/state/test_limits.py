import re
from dataclasses import asdict, fields

from emceepee.state.limits import LIVE, Limits, range_of


def test_the_default_limits_are_the_documented_ones() -> None:
    promised = {
        "connect_seconds": 30,
        "list_patience_seconds": 3,
        "request_seconds": 60,
        "call_seconds": 120,
        "quiet_call_seconds": 50,
        "longest_call_seconds": 900,
        "notifications_per_server": 100,
        "log_lines_per_server": 500,
        "buffered_item_bytes": 1 << 20,
        "buffered_bytes_per_server": 8 << 20,
        "buffered_bytes_per_session": 32 << 20,
        "full_list_bytes": 32 << 10,
        "list_reply_bytes": 100_000,
        "searched_entries": 20_000,
        "search_bytes": 16 << 10,
        "line_bytes": 64 << 20,
        "requests_per_link": 100,
        "connections_per_origin": 2000,
        "connections_in_all": 8000,
        "http_retry_seconds": 1,
        "longest_http_retry_seconds": 180,
        "stable_seconds": 60,
        "health_check_seconds": 120,
        "idle_stop_seconds": 0,
        "events_per_session": 1000,
        "event_seconds": 30 * 60,
        "events_in_all": 10_000,
        "notice_bytes": 8192,
        "requests_per_session": 100,
        "requests_in_all": 1000,
        "tasks_per_session": 100,
        "task_ttl_seconds": 10 * 60,
        "longest_task_ttl_seconds": 30 * 60,
        "task_retention_seconds": 5 * 60,
        "task_bytes_per_session": 32 << 20,
        "task_bytes_in_all": 128 << 20,
        "largest_result_bytes": 0,
        "results_per_session": 50,
        "result_bytes_per_session": 128 << 20,
        "result_bytes_in_all": 512 << 20,
        "question_seconds": 10 * 60,
        "modern_question_seconds": 9 * 60,
        "questions_per_server": 20,
        "questions_per_session": 100,
        "sessions_per_principal": 2000,
        "sessions_in_all": 10_000,
        "connections_per_session": 100,
        "session_idle_seconds": 30 * 60,
        "processes_in_all": 250,
        "processes_per_principal": 200,
        "process_idle_seconds": 5 * 60,
        "session_kept_seconds": 24 * 3600,
        "unused_session_seconds": 5 * 60,
        "replica_lease_seconds": 5,
        "replay_messages": 1000,
        "replay_seconds": 5 * 60,
        "request_body_bytes": 4 << 20,
        "request_head_bytes": 64 << 10,
        "request_headers": 200,
        "request_head_seconds": 10,
        "request_body_seconds": 30,
        "idle_connection_seconds": 75,
        "unread_answer_seconds": 30,
        "unread_bytes_in_all": 128 << 20,
        "pipelined_requests": 16,
        "batch_messages": 50,
        "caller_connections": 10_000,
        "recording_bytes": 32 << 20,
        "recordings_in_all": 4,
        "script_compute_seconds": 10,
        "script_memory_bytes": 32 << 20,
        "script_result_bytes": 1 << 20,
        "script_log_bytes": 64 << 10,
        "script_workers": 4,
        "script_workers_per_principal": 3,
        "timers_per_session": 100,
        "longest_timer_seconds": 24 * 3600,
        "timer_retention_seconds": 5 * 60,
    }
    assert asdict(Limits()) == promised


def test_every_limit_has_a_description() -> None:
    assert all(len(item.metadata["meaning"]) > 10 for item in fields(Limits))


def test_limits_for_durations_are_floats_and_limits_for_counts_are_integers() -> None:
    for item in fields(Limits):
        assert type(item.default) is (float if item.name.endswith("_seconds") else int), item.name


def test_a_limit_whose_description_mentions_zero_accepts_zero() -> None:
    for item in fields(Limits):
        assert not re.search(r"\b0\b", item.metadata["meaning"]) or range_of(item.name).allows(0), item.name


def test_a_limits_update_adopts_only_the_limits_that_can_change_at_run_time() -> None:
    limits, other = Limits(), Limits()
    for item in fields(Limits):
        setattr(other, item.name, getattr(other, item.name) + 1)
    limits.update(other)
    assert {item.name for item in fields(Limits)} - {*limits.changed_in(other)} == LIVE
    assert {*limits.changed_in(Limits())} == LIVE
