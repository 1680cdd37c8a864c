"""How a process knows that it is a worker, and how it is started."""

import json
import socket
import sys

import pytest

from emceepee.cli.worker import LINK, WORKER_VARIABLE, NoWorker, claim_worker, worker_command


def test_without_the_variable_it_is_none() -> None:
    assert claim_worker({}) is None


def test_the_variable_names_its_number_and_its_line_and_is_gone_then() -> None:
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
def test_a_variable_that_no_parent_has_set_is_refused(given: str) -> None:
    with pytest.raises(NoWorker, match="unset it"):
        claim_worker({WORKER_VARIABLE: given})


def test_a_worker_is_the_same_command_with_the_port_that_was_reserved() -> None:
    expected = [sys.executable, "-P", "-m", "emceepee", "serve", "--workers", "4", "--port", "0"]
    differs = ["--port", "81", "--workers", "1"]
    assert worker_command(["serve", "--workers", "4", "--port", "0"], 81) == [*expected, *differs]
    assert worker_command(None, 81) == [sys.executable, *sys.orig_argv[1:], *differs]
