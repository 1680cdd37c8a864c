"""Messages from workers to their parent."""

import asyncio
import json

import pytest

from emceepee.cli.serve.worker import LONGEST_REPORT, READY
from emceepee.cli.serve.worker_processes import reports


async def test_unreadable_worker_reports_are_skipped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    reader = asyncio.StreamReader(limit=LONGEST_REPORT)
    report = json.dumps([READY, "http://x"]).encode() + b"\n"
    for line in (b"x" * (3 * LONGEST_REPORT) + b"\n", report, b"[" * 10_000 + b"\n", b"{}\n", report):
        reader.feed_data(line)
    reader.feed_eof()
    assert [found async for found in reports(reader, 1)] == [(READY, "http://x")] * 2
    assert [record.getMessage() for record in caplog.records] == ["worker_report_unreadable"]
