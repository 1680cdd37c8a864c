"""Scripts of two principals: one uses all of its limits, and the other hardly notices."""

import asyncio

from support.callers.http_process import http_process
from support.figures import record_figure
from support.system.processes import sandbox_workers_of
from support.waiting import eventually

ENDLESS = 10
SECONDS = 5  # for which an endless script computes
LONGEST = SECONDS / 2  # with room for a busy machine: a second script of the same principal waits for longer
TOKENS = {"ann": "token-of-ann", "bob": "token-of-bob"}


async def test_endless_scripts_of_one_principal_do_not_block_another() -> None:
    options = [word for name, token in TOKENS.items() for word in ("--token", f"{name}={token}")]
    limits = {"EMCEEPEE_CONFIG": f'{{"limits": {{"script_compute_seconds": {SECONDS}}}}}'}
    async with http_process(*options, env=limits) as endpoint:
        headers = {name: f"Bearer {token}" for name, token in TOKENS.items()}
        ann, bob = [await endpoint.caller(authorization=header) for header in headers.values()]
        assert (await bob.value("codemode_execute", code="1 + 1"))["result"] == 2
        looping = [asyncio.create_task(ann.call("codemode_execute", code="while True: pass")) for _ in range(ENDLESS)]
        await eventually(lambda: len(sandbox_workers_of(endpoint.process.pid)) >= 3, what="as many run as may")
        began = asyncio.get_running_loop().time()
        for number in range(3):
            assert (await bob.value("codemode_execute", code=f"{number} + 1"))["result"] == number + 1
        took = (asyncio.get_running_loop().time() - began) / 3
        record_figure(f"a script beside {ENDLESS} endless ones of another principal took {took * 1000:.0f} ms")
        ended = await asyncio.gather(*looping)
    assert took < LONGEST
    assert {reply["structuredContent"]["error"]["name"] for reply in ended} == {"TimeoutError"}
