"""Fixtures of all tests: the measured figures appear at the end of the run."""

import logging
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from emceepee.paths import CONFIG_VARIABLE
from emceepee.store.location import usual_path
from support.figures import FILE, PROPERTY, take_figures, write_figures
from support.system.redis_server import RedisServer, redis_server

NAME_OF_TEST = re.compile(r"::[^\[]*")  # a sentence; what was measured says enough
LONGEST = 80  # characters of a file and a parameter


USERS_STATE = usual_path(os.environ, sys.platform)  # which no test may touch
TESTS_STATE = Path(tempfile.mkdtemp(prefix="emceepee-tests-"))
TESTS_STATE.chmod(0o711)  # some tests serve as another user
os.environ["XDG_STATE_HOME"] = str(TESTS_STATE)  # of every process that is started here
os.environ[CONFIG_VARIABLE] = ""  # the user's own servers are not started
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each of the many processes would compile all sources again,
sys.dont_write_bytecode = False  # and each worker all tests
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # by nohup; who is started here would ignore it, too
    signal.signal(signal.SIGHUP, lambda *_: None)


def _state_of_user() -> list[tuple[str, int]]:
    """Its files, and when each was changed last."""
    files = sorted(USERS_STATE.parent.glob("*")) if USERS_STATE.parent.is_dir() else []
    return [(file.name, file.stat().st_mtime_ns) for file in files]


STATE_BEFORE = _state_of_user()


def pytest_sessionfinish(session: pytest.Session) -> None:
    shutil.rmtree(TESTS_STATE, ignore_errors=True)
    if _state_of_user() != STATE_BEFORE:
        raise pytest.UsageError(f"a test has touched the user's own state in {USERS_STATE.parent}")


@pytest.fixture(autouse=True)
def logs_as_before() -> Iterator[None]:
    """A command that runs in the test's own process sets up its log as if the process were its own."""
    root, own = logging.getLogger(), logging.getLogger("emceepee")
    levels, handlers, disabled = (root.level, own.level), list(root.handlers), logging.root.manager.disable
    yield
    logging.disable(disabled)  # `bench.simulate` logs nothing
    for handler in [handler for handler in root.handlers if handler not in handlers]:
        root.removeHandler(handler)
        handler.close()
    root.setLevel(levels[0])
    own.setLevel(levels[1])


@pytest.fixture(scope="session")
def redis() -> Iterator[RedisServer]:
    """A Redis that all tests of a worker share, each with its own prefix. A test that kills one starts another."""
    with redis_server() as running:
        yield running


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--figures", type=Path, default=FILE, metavar="FILE", help="where measured figures are kept")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    report.user_properties = [*report.user_properties, *((PROPERTY, text) for text in take_figures())]
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    reports = [each for found in terminalreporter.stats.values() for each in found if hasattr(each, "user_properties")]
    figures = [(each.nodeid, text) for each in reports for name, text in each.user_properties if name == PROPERTY]
    if not figures:
        return
    write_figures(figures, config.getoption("figures"), tests={each.nodeid for each in reports})
    terminalreporter.section("figures")
    for test, text in sorted(figures):
        terminalreporter.line(f"{NAME_OF_TEST.sub('', test)[:LONGEST]}: {text}")
