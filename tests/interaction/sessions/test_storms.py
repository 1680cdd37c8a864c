"""A server that repeats the same message forever uses a bounded amount of memory and log lines."""

import logging

import pytest

from support.backends.scripted_backend import ScriptedBackend
from support.figures import record_figure
from support.sessions.scene import a_scene

CHANGED = "notifications/tools/list_changed"


async def test_a_flood_of_list_changes_writes_few_log_lines_and_sends_few_list_requests(
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        await scene.value("list_tools")
        asked = len(backend.seen)
        with caplog.at_level(logging.INFO):
            for _ in range(5):
                for _ in range(10_000):
                    backend.link.listener.handle_notification(CHANGED, {}, None)
                await scene.clock.advance(1)
        lines = [record.getMessage() for record in caplog.records]
        record_figure(f"{len(lines)} log lines and {len(backend.seen) - asked} list requests for 50,000 notifications")
        assert len(backend.seen) == asked
        assert lines.count("event_store_eviction") == 5
        assert len(lines) <= 10
        await scene.value("list_tools")
        assert [method for method, _ in backend.seen[asked:]] == ["tools/list"]


async def test_the_log_counts_all_dropped_messages(caplog: pytest.LogCaptureFixture) -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        with caplog.at_level(logging.WARNING):
            for _ in range(3000):
                backend.link.listener.handle_notification(CHANGED, {}, None)
            await scene.clock.advance(1)
            for _ in range(200):
                backend.link.listener.handle_notification(CHANGED, {}, None)
        told = [getattr(record, "fields", {}) for record in caplog.records]
        counts = [fields["evictedCount"] for fields in told if "evictedCount" in fields]
        assert len(counts) == 2
        assert 3200 - sum(counts) <= 1000 + 100
