"""Each request writes one line with its caller and its name, and without secrets."""

import json
import os
import stat
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from emceepee.ids import Ulids
from emceepee.telemetry import audit_log
from emceepee.telemetry.audit_log import LOOK_SECONDS, AuditLog, digest
from emceepee.telemetry.journal import Journal, SpanBudget, SpanOwner
from emceepee.telemetry.spans import SpanKind
from support.fakes.clock import FakeClock
from support.figures import record_figure

ARGUMENTS = {"to": "ann", "body": {"password": "hunter2", "text": "hi"}}


class Audited:
    """A session whose requests are audited."""

    def __init__(self, path: Path, *, with_arguments: bool = False) -> None:
        self.path, self.clock = path, FakeClock()
        self.log = AuditLog(path, self.clock, with_arguments=with_arguments)
        self.journal = Journal(
            SpanBudget(10, (self.log,)),
            self.clock,
            Ulids(lambda: 0),
            most=10,
            changed=lambda: None,
            owner=SpanOwner("01SESSION", "ann"),
        )

    async def serve(self, name: str, kind: SpanKind = SpanKind.TOOL_CALL, result: dict[str, Any] | None = None) -> None:
        span = self.journal.begin(kind, name, "mail", ARGUMENTS)
        await self.clock.advance(0.25)
        span.replied(result or {})

    def lines(self) -> list[dict[str, Any]]:
        assert self.log.flush()
        return [json.loads(line) for line in self.path.read_text().splitlines()]


async def test_an_audit_line_contains_caller_request_time_and_outcome(tmp_path: Path) -> None:
    audited = Audited(tmp_path / "audit")
    await audited.serve("send", result={"isError": True, "content": [{"type": "text", "text": "no such ann"}]})
    [line] = audited.lines()
    when = line.pop("time")
    assert when.endswith("Z")
    assert line == {
        "principal": "ann",
        "session": "01SESSION",
        "kind": "tool_call",
        "name": "send",
        "server": "mail",
        "outcome": "error",
        "durationMs": 250.0,
        "argumentsSha256": sha256(b'{"body":{"password":"hunter2","text":"hi"},"to":"ann"}').hexdigest(),
    }
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o600
    audited.log.close()


async def test_the_audit_log_contains_arguments_only_if_configured_and_without_secrets(tmp_path: Path) -> None:
    audited = Audited(tmp_path / "audit", with_arguments=True)
    await audited.serve("send")
    await audited.serve("https://me:pw@example.com/x?key=1", SpanKind.RESOURCE_READ)
    [call, read] = audited.lines()
    assert call["arguments"] == {"to": "ann", "body": {"password": "***", "text": "hi"}}
    text = (tmp_path / "audit").read_text()
    assert "hunter2" not in text
    assert ("me:pw" in read["name"], "key=1" in read["name"]) == (False, False)
    audited.log.close()


async def test_requests_that_only_list_things_are_not_audited(tmp_path: Path) -> None:
    audited = Audited(tmp_path / "audit")
    await audited.serve("tools/list", SpanKind.PROTOCOL)
    assert audited.lines() == []
    audited.log.close()


async def test_the_audit_log_reopens_a_rotated_file(tmp_path: Path) -> None:
    audited = Audited(tmp_path / "audit")
    await audited.serve("first")
    assert len(audited.lines()) == 1
    os.rename(tmp_path / "audit", tmp_path / "audit.1")
    await audited.clock.advance(LOOK_SECONDS)
    await audited.serve("second")
    assert [line["name"] for line in audited.lines()] == ["second"]
    assert stat.S_IMODE((tmp_path / "audit").stat().st_mode) == 0o600
    audited.log.close()


async def test_a_full_disk_under_the_audit_log_is_reported_once_and_stops_no_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(audit_log, "tell_operator", told.append)
    audited = Audited(Path("/dev/full"))
    for _ in range(3):
        await audited.serve("send")
        assert audited.log.flush()
    assert len(told) == 1
    assert "/dev/full cannot be written: No space left on device" in told[0]
    audited.log.close()


def test_an_argument_digest_does_not_depend_on_key_order() -> None:
    assert digest({"a": 1, "b": {"c": 2, "d": 3}}) == digest({"b": {"d": 3, "c": 2}, "a": 1})
    assert digest({"a": 1 << 70, "b": 1}) == digest({"b": 1, "a": 1 << 70})
    assert digest({"a": 1}) != digest({"a": 2})
    cleaned = {"b": {"c": 2, "d": 1}, "a": "\N{REPLACEMENT CHARACTER}"}
    assert digest({"a": "\ud800", "b": {"d": 1, "c": 2}}) == digest(cleaned)


@pytest.mark.alone
@pytest.mark.parametrize("odd", [1 << 70, "\ud800"], ids=["a large number", "a lone surrogate"])
def test_a_digest_of_very_many_arguments_is_computed_quickly(odd: object) -> None:
    keys = {f"key{each}": each for each in range(200_000)}
    arguments = {"odd": odd, "rows": [{"b": 1, "a": 2}] * 200_000, "keys": keys}
    began = time.process_time()
    digest(arguments)
    took = time.process_time() - began
    record_figure(f"a digest of a million values: {took * 1000:.0f} ms (wanted: 250)")
    assert took < 5 * 0.25
