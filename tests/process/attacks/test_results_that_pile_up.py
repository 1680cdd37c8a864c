"""Large results that callers do not fetch: the newest are kept, and memory stays bounded."""

import pytest

from emceepee.cli.serve.process_setup import KEPT_BYTES
from support.backends.http_backend import BIG, http_backend
from support.callers.emceepee_process import configured
from support.callers.http_process import http_process, until
from support.faults.strain import GROWTH_BYTES, WAIT_SECONDS, strain_on
from support.figures import record_figure
from support.matrix import matrix

CALLS = 60
WRITTEN_BYTES = 48 << 20  # for what is on its way to the disk: each result once as JSON and once in SQLite


@pytest.mark.parametrize("state", matrix(["memory", "sqlite"], representatives=["memory"]))
async def test_the_size_of_finished_tasks_is_bounded_in_bytes(state: str) -> None:
    async with (
        http_backend() as backend,
        http_process("--state", state, env=configured({"big": {"url": backend.url}})) as endpoint,
    ):
        caller = await endpoint.caller()
        await caller.value("list_tools")
        async with strain_on(endpoint) as strain:

            async def are_done() -> bool:
                return not (await caller.value("list_tasks"))["tasks"]

            for number in range(CALLS):
                await caller.call("execute_tool", server="big", tool="big", timeout_ms=0)
                if number % 2 == 1:
                    await until(are_done, "the calls so far are done")
        tasks = (await caller.value("list_tasks", include_completed=True))["tasks"]
        kept = [task for task in tasks if task["hasResult"]]
        record_figure(f"{len(kept)} of {len(tasks)} results of {BIG >> 20} MiB are kept")
        assert 1 <= len(kept) <= (32 << 20) // BIG
        assert strain.failures == 0
        assert strain.longest_wait < WAIT_SECONDS
        on_the_way = WRITTEN_BYTES if state == "sqlite" else 0
        assert strain.growth < GROWTH_BYTES + KEPT_BYTES + on_the_way  # freed, and kept for the next large result
