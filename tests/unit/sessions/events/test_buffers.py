from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.sessions.events.buffers import (
    BufferBudget,
    LogLevel,
    LogLine,
    LogSource,
    ServerBuffers,
    cut,
    measured,
    read_logs,
)
from emceepee.state.limits import Limits
from emceepee.wire.codec import encode
from support.fakes.clock import START


def buffers(server: str = "demo", **limits: int) -> ServerBuffers:
    return ServerBuffers(server, Limits(**limits))


def at(seconds: int) -> Any:
    return START + timedelta(seconds=seconds)


def everything(_: LogLine) -> bool:
    return True


def texts(lines: list[LogLine]) -> list[Any]:
    return [line.data for line in lines]


def with_lines(*texts_: str, server: str = "demo", **limits: int) -> ServerBuffers:
    made = buffers(server, **limits)
    for number, text in enumerate(texts_):
        made.add_output(text, LogSource.STDERR, at(number))
    return made


def test_reading_logs_returns_the_newest_lines_in_order_and_clears_only_those() -> None:
    buffer = with_lines("a", "b", "c", "d")
    assert texts(read_logs([buffer], everything, limit=2, clear=True)[0]) == ["c", "d"]
    assert texts(read_logs([buffer], everything, limit=9, clear=True)[0]) == ["a", "b"]
    assert len(buffer.logs) == 0


def test_log_lines_that_the_filter_excludes_are_not_cleared() -> None:
    buffer = with_lines("a", "b", "a")
    read, _ = read_logs([buffer], lambda line: line.data == "a", limit=9, clear=True)
    assert texts(read) == ["a", "a"]
    assert texts(list(buffer.logs)) == ["b"]


def test_two_equal_log_lines_count_as_two_lines() -> None:
    buffer = buffers()
    for _ in range(2):
        buffer.add_output("same", LogSource.STDOUT, at(0))
    assert len(read_logs([buffer], everything, limit=1, clear=True)[0]) == 1
    assert len(buffer.logs) == 1


def test_reading_logs_without_clearing_removes_nothing() -> None:
    buffer = with_lines("a", "b")
    for _ in range(2):
        assert texts(read_logs([buffer], everything, limit=9, clear=False)[0]) == ["a", "b"]


def test_log_lines_of_several_servers_are_sorted_by_time() -> None:
    first, second = buffers("first"), buffers("second")
    first.add_output("1", LogSource.STDERR, at(1))
    second.add_output("2", LogSource.STDERR, at(2))
    first.add_output("3", LogSource.STDERR, at(3))
    read, _ = read_logs([second, first], everything, limit=2, clear=True)
    assert [(line.server, line.data) for line in read] == [("second", "2"), ("first", "3")]


def test_dropped_log_lines_are_counted_once() -> None:
    buffer = with_lines("a", "b", "c", "d", log_lines_per_server=3)
    assert read_logs([buffer], everything, limit=9, clear=True)[1] == 1
    assert read_logs([buffer], everything, limit=9, clear=True) == ([], 0)


def test_a_log_message_of_the_protocol_keeps_its_level_logger_and_data() -> None:
    buffer = buffers()
    buffer.add_log_message({"level": "error", "logger": "db", "data": {"a": None}}, at(0))
    [line] = buffer.logs
    assert (line.server, line.at, line.level, line.source) == ("demo", START, LogLevel.ERROR, LogSource.PROTOCOL)
    assert (line.logger, line.data) == ("db", {"a": None})


@pytest.mark.parametrize("params", [{}, {"level": "loud"}, {"level": None, "logger": 5}, {"level": ["error"]}])
def test_a_log_message_with_invalid_labels_is_stored_as_info(params: dict[str, Any]) -> None:
    buffer = buffers()
    buffer.add_log_message(params | {"data": "x"}, at(0))
    [line] = buffer.logs
    assert (line.level, line.logger, line.data) == (LogLevel.INFO, None, "x")


def test_log_levels_are_ordered_mildest_first() -> None:
    ordered = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
    assert sorted(LogLevel, key=lambda level: level.severity) == ordered


def test_a_notification_is_stored_unchanged() -> None:
    buffer = buffers(notifications_per_server=2)
    buffer.add_notification("lost", {}, at(0))
    buffer.add_notification("a", {"x": {"y": None}}, at(1))
    buffer.add_notification("b", {}, at(2))
    assert [(item.method, item.params, item.at) for item in buffer.notifications] == [
        ("a", {"x": {"y": None}}, at(1)),
        ("b", None, at(2)),
    ]


def test_a_buffered_item_over_the_limit_is_truncated_with_a_note() -> None:
    buffer = buffers(buffered_item_bytes=10)
    buffer.add_output("x" * 30, LogSource.STDERR, at(0))
    buffer.add_notification("m", {"key": "x" * 30}, at(0))
    [line], [item] = buffer.logs, buffer.notifications
    assert line.data == "xxxxxxxxxx… (cut: 30 bytes in all)"
    assert item.params == {"cut": '{"key":"xx… (cut: 40 bytes in all)'}


def test_truncation_never_splits_a_character() -> None:
    assert cut("ääää", 5) == "ää… (cut: 8 bytes in all)"
    assert cut("😀😀", 7) == "😀… (cut: 8 bytes in all)"


@given(
    st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.integers()), st.integers(min_value=0, max_value=60)
)
def test_an_item_that_fits_is_stored_unchanged_and_any_other_is_marked_as_truncated(value: Any, limit: int) -> None:
    size = len(value.encode("utf-8", "replace")) if isinstance(value, str) else len(encode(value))
    kept = cut(value, limit)
    if size <= limit:
        assert kept is value
    else:
        text = kept if isinstance(value, str) else kept["cut"]
        assert text.endswith(f"… (cut: {size} bytes in all)")


def test_the_buffers_of_a_server_are_limited_in_bytes_and_dropped_items_are_counted() -> None:
    buffer = buffers(buffered_bytes_per_server=2000)
    for number in range(5):
        buffer.add_notification("m", {"n": "x" * 300}, at(number))
        buffer.add_output("y" * 300, LogSource.STDERR, at(number))
    assert (len(buffer.notifications), buffer.notifications.take_dropped()) == (3, 2)
    lines, dropped = read_logs([buffer], everything, limit=9, clear=False)
    assert (len(lines), dropped) == (3, 2)
    assert buffer.bytes < 2000


def test_many_small_values_are_measured_larger_than_their_text() -> None:
    assert measured([0] * 1000, 10_000)[1] > 50_000
    assert measured("0," * 1000, 10_000)[1] == 2000


def test_the_fullest_server_loses_its_oldest_items_when_a_session_buffers_too_much() -> None:
    all_buffers: dict[str, ServerBuffers] = {}
    budget = BufferBudget(3000, all_buffers)
    for name in ("quiet", "loud"):
        all_buffers[name] = ServerBuffers(name, Limits(), budget=budget)
    all_buffers["quiet"].add_output("q" * 1000, LogSource.STDERR, at(0))
    for number in range(10):
        all_buffers["loud"].add_output("l" * 500, LogSource.STDERR, at(number))
        all_buffers["loud"].add_notification("m", {"n": "x" * 90}, at(number))
    assert len(all_buffers["quiet"].logs) == 1
    assert sum(buffer.bytes for buffer in all_buffers.values()) <= 3000
    assert all_buffers["loud"].logs.take_dropped() >= 7


def test_overlong_notification_and_logger_names_are_truncated() -> None:
    buffer = buffers()
    buffer.add_notification("m" * 5000, {}, at(0))
    buffer.add_log_message({"logger": "l" * 5000, "data": 1}, at(0))
    [item], [line] = buffer.notifications, buffer.logs
    assert len(item.method) < 1100
    assert len(line.logger or "") < 1100
