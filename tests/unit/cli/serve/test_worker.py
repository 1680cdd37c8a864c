"""How a process detects that it is a worker, and how the parent starts it."""

import json
import socket
import sys

import pytest

from emceepee.cli.serve.worker import (
    FAILED,
    LINK,
    LONGEST_REPORT,
    LONGEST_TEXT,
    WORKER_VARIABLE,
    NoWorker,
    claim_worker,
    read_report,
    worker_command,
)


def test_a_process_without_the_worker_variable_is_not_a_worker() -> None:
    assert claim_worker({}) is None


def test_the_worker_variable_names_number_and_pipe_and_is_removed_from_the_environment() -> None:
    ours, theirs = socket.socketpair()
    environment = {WORKER_VARIABLE: f"3:{theirs.detach()}", "OTHER": "kept"}
    worker = claim_worker(environment)
    assert worker is not None
    assert (worker.index, environment) == (3, {"OTHER": "kept"})
    assert worker.report(LINK, "http://ü\n")
    assert json.loads(ours.makefile().readline()) == [LINK, "http://ü\n"]
    ours.close()
    assert not worker.report(LINK, "nobody hears it")
    worker._line.close()


@pytest.mark.parametrize("given", ["", "1", "x:1", "1:x", "1:999999", "1:-1"])
def test_an_invalid_worker_variable_is_rejected(given: str) -> None:
    with pytest.raises(NoWorker, match="unset it"):
        claim_worker({WORKER_VARIABLE: given})


def test_a_worker_runs_the_same_command_with_the_reserved_port() -> None:
    expected = [sys.executable, "-P", "-m", "emceepee", "serve", "--workers", "4", "--port", "0"]
    differs = ["--port", "81", "--workers", "1"]
    assert worker_command(["serve", "--workers", "4", "--port", "0"], 81) == [*expected, *differs]
    assert worker_command(None, 81) == [sys.executable, *sys.orig_argv[1:], *differs]


def test_a_worker_report_is_truncated_to_fit_the_limit_of_the_parent() -> None:
    ours, theirs = socket.socketpair()
    worker = claim_worker({WORKER_VARIABLE: f"0:{theirs.detach()}"})
    assert worker is not None
    with ours:
        assert worker.report(FAILED, "\N{WORRIED FACE}" * 100_000)
        line = ours.makefile("rb").readline()
        assert len(line) <= LONGEST_REPORT
        assert read_report(line) == (FAILED, "\N{WORRIED FACE}" * LONGEST_TEXT)
    worker._line.close()


@pytest.mark.parametrize(
    "line", [b"\n", b"\xff\n", b"[" * 50_000, b"{}", b'["ready"]', b'["ready", 1]', b'["a", "b", "c"]']
)
def test_a_malformed_worker_report_is_ignored(line: bytes) -> None:
    assert read_report(line) is None
