"""The official suite gets the same results from two replicas behind a plain balancer as from one process."""

import itertools
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from support.callers.conformance_suite import ENTRY, VERSIONS, Verdicts, run_suite, verdicts
from support.callers.http_process import http_process
from support.callers.replicas import TOKEN, two_replicas
from support.matrix import matrix
from support.programs.conformance_bus import BUS_VARIABLE
from support.system.balancers import BALANCERS, balancer
from support.system.redis_server import redis_server

pytestmark = pytest.mark.asyncio(loop_scope="module")

STATES = ["sqlite", "redis"]
QUICK_STATES = ["redis"]
QUICK_BALANCERS = [("nginx", "2025-11-25"), ("haproxy", "2026-07-28")]


async def judge(url: str, version: str, folder: Path) -> Verdicts:
    await run_suite("server", "--url", url, "--suite", "all", "--spec-version", version, "-o", str(folder))
    return verdicts(folder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def direct(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verdicts]:
    """The suite's results for one process, by version. It requires no token, because the suite has none."""
    folder = tmp_path_factory.mktemp("direct")
    async with http_process("--log-level", "warn", module=ENTRY) as alone:
        return {version: await judge(alone.url, version, folder / version) for version in VERSIONS}


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=matrix(STATES, representatives=QUICK_STATES))
async def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[list[str]]:
    """The origins of two replicas."""
    bus = tmp_path_factory.mktemp("bus")
    with ExitStack() as stack:
        if request.param == "redis":
            state = stack.enter_context(redis_server()).url()
        else:
            state = f"sqlite:{tmp_path_factory.mktemp('state')}/state.db"
        async with two_replicas(state, env={BUS_VARIABLE: str(bus)}, module=ENTRY) as running:
            yield [each.origin for each in running]


def different(through: Verdicts, direct: Verdicts) -> dict[str, object]:
    """The scenarios that came out in another way, with both ways."""
    return {
        scenario: {"direct": direct.get(scenario), "through": through.get(scenario)}
        for scenario in direct.keys() | through.keys()
        if direct.get(scenario) != through.get(scenario)
    }


@pytest.mark.parametrize(
    ("name", "version"), matrix(itertools.product(BALANCERS, VERSIONS), representatives=QUICK_BALANCERS)
)
async def test_every_conformance_check_behind_a_balancer_has_the_result_of_one_process(
    name: str, version: str, direct: dict[str, Verdicts], pair: list[str], tmp_path: Path
) -> None:
    async with balancer(name, pair, tmp_path, token=TOKEN) as url:
        through = await judge(url, version, tmp_path / "results")
    assert different(through, direct[version]) == {}
    passed = [check for checks in through.values() for check, verdict in checks if verdict == "SUCCESS"]
    assert len(passed) >= {"2025-11-25": 45, "2026-07-28": 108}[version]
