"""Values that are expensive to copy into or out of the sandbox delay no other caller."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
import pytest_asyncio

from support.backends.big_backend import big_backend
from support.callers.cost_for_others import LONGEST_WAIT, MOST_GROWTH, cost_for_others
from support.callers.emceepee_process import configured
from support.callers.http_process import HttpProcess, http_process
from support.figures import record_figure

pytestmark = pytest.mark.asyncio(loop_scope="module")

COMPUTE = 5  # seconds for which a script computes
BOUND = 60.0  # seconds for one script
SHARED = "def untyped(x: Any) -> Any: return x\nx = untyped([])\nfor _ in range(45): x = [x, x]\nx = untyped(x)\n"
EACH = """
async def told(call):
    try:
        return str(await call)[:100]
    except ValueError as error:
        return str(error)
    except RuntimeError as error:
        return str(error)
"""
BYTES, VALUES = "more than 1048576 bytes", "more than 100000 values"
SENT = "more than 4194304 bytes"


@dataclass(frozen=True, slots=True)
class Hostile:
    """A script, and the error for its author."""

    code: str
    told: str


RESULTS = {
    "a shared list as the result": Hostile(f"{SHARED}x", VALUES),
    "one long text 600 times": Hostile('["x" * 10**6] * 600', BYTES),
    "a text of 12 MB": Hostile('"x" * 12_000_000', BYTES),
    "control characters": Hostile(r'["\x01" * 10**6] * 60', BYTES),
    "one long key of many objects": Hostile('k = "k" * 10**6\n[{k: 1} for _ in range(600)]', BYTES),
    "shared tuples as a key": Hostile("x = ()\nfor _ in range(17): x = (x, x)\n[{x: 1}] * 100", "more than"),
    "one number of many digits": Hostile("[10**3000] * 300_000", BYTES),
    "a number of too many digits": Hostile("2**100_000", "too many digits"),
    "deep nesting": Hostile("x = 0\nfor _ in range(100_000): x = [x]\nx", "nested more than 100 levels"),
    "shared objects of a class": Hostile(
        "class A:\n    def __init__(self, x: Any): self.p = self.q = x\nx: Any = 1\nfor _ in range(45): x = A(x)\nx",
        VALUES,
    ),
    "shared bytes": Hostile('[b"x" * 10**6] * 600', BYTES),
    "many small objects": Hostile("x = {'': 0}\n[[x] * 1000] * 1000", VALUES),
    "as many small objects as are returned": Hostile("x = {'': 0}\n[[x] * 1000] * 45", "success"),
}
ARGUMENTS = {
    "a shared list as an argument": Hostile(f"{SHARED}await mcp.call_tool('big', 'echo', {{'x': x}})", VALUES),
    "a shared list to a tool of emceepee": Hostile(f"{SHARED}await mcp.tool('set_timer', {{'message': x}})", VALUES),
    "shared lists to many calls at once": Hostile(
        f"{SHARED}{EACH}await asyncio.gather(*[told(mcp.call_tool('big', 'echo', {{'x': x}})) for _ in range(90)])",
        VALUES,
    ),
    "large arguments of many calls at once": Hostile(
        f"x = 'x' * 3_000_000\n{EACH}"
        "await asyncio.gather(*[told(mcp.call_tool('big', 'echo', {'x': x})) for _ in range(90)])",
        SENT,
    ),
    "as much as may be sent": Hostile("await mcp.call_tool('big', 'echo', {'x': ['x' * 1_000_000] * 4})", "success"),
    "as many values as may be sent": Hostile(
        "await mcp.call_tool('big', 'echo', {'x': [[{'': 0}] * 400] * 110})", "success"
    ),
    "a shared list as the name of a server": Hostile(f"{SHARED}await mcp.call_tool(x, x, x)", VALUES),
    "a shared list as seconds": Hostile(f"{SHARED}await mcp.sleep(x)", VALUES),
    "refused arguments again and again": Hostile(
        "x = [[0] * 1000] * 1000\nfor _ in range(1000):\n"
        "    try: await mcp.call_tool('big', 'echo', {'x': x})\n    except ValueError: pass",
        "computed for more than",
    ),
}
LINES = {
    "a shared list in the log": Hostile(f"{SHARED}mcp.log(x)\n'done'", "is not logged"),
    "shared lists in all lines of the log": Hostile(
        f"{SHARED}for _ in range(1000): mcp.log(x, x, x)\n'done'", "is not logged"
    ),
    "long lines in the log": Hostile(
        "x = 'x' * 10**6\nfor _ in range(1000): mcp.log(x, *[x] * 9)\n'done'", "were dropped"
    ),
    "very many values in the log": Hostile("x = ['x' * 10**6] * 900\nfor _ in range(900): mcp.log(*x)", "were dropped"),
    "a flood of prints": Hostile("x = 'x' * 10**6\nwhile True: print(x)", "computed for more than"),
    "a flood of lines": Hostile("while True: print('a\\n' * 10_000)", "computed for more than"),
    "a long exception": Hostile("raise ValueError('x' * 4_000_000)", "xxx"),
    "an exception with a shared list": Hostile(
        "x = []\nfor _ in range(19): x = [x, x]\nraise ValueError(str(x))", "[["
    ),
    "very many mistakes": Hostile("undefined_name;" * 4000, "undefined_name"),
    "very many missing awaits": Hostile("mcp.list_servers();" * 3000 + "1", "The script was not run"),
}
ANSWERS = {
    "very many values": Hostile("await mcp.call_tool('big', 'values')", "more than 262144 values"),
    "very many keys": Hostile("await mcp.call_tool('big', 'keys')", "more than 262144 values"),
    "a text of 20 MB": Hostile("await mcp.call_tool('big', 'text')", "more than 16777216 bytes"),
    "large answers to many calls at once": Hostile(
        f"{EACH}await asyncio.gather(*[told(mcp.call_tool('big', 'half')) for _ in range(6)])",
        "success",
    ),
    "a failure of very many blocks": Hostile("await mcp.call_tool('big', 'failure')", "big.failure"),
}
WAITING = {
    "much that is parked": Hostile("x = [str(n) * 10 for n in range(60_000)]\nawait mcp.sleep(1.3)\nlen(x)", "60000"),
    "arguments that are parked": Hostile(
        "x = 'x' * 1_000_000\nasync def later():\n    await mcp.sleep(1.3)\n    1 / 0\n"
        "await asyncio.gather(mcp.call_tool('big', 'slow', {'x': [x] * 4}), later())",
        "ZeroDivisionError",
    ),
}
TABLE = RESULTS | ARGUMENTS | LINES | ANSWERS | WAITING


def answers() -> dict[str, str]:
    """The results of calls, by the tool."""
    values = "[" + "[]," * 300_000 + "[]]"
    keys = ",".join(f'"{n}":{n}' for n in range(200_000))
    block = '{"type":"resource_link","uri":"a:b","name":"n"}'
    return {
        "echo": '{"content":[]}',
        "slow": '{"content":[]}',
        "values": f'{{"content":[],"structuredContent":{{"values":{values}}}}}',
        "keys": f'{{"content":[],"structuredContent":{{{keys}}}}}',
        "text": f'{{"content":[{{"type":"text","text":"{"t" * (20 << 20)}"}}]}}',
        "half": f'{{"content":[{{"type":"text","text":"{"h" * (5 << 20)}"}}]}}',
        "failure": f'{{"isError":true,"content":[{",".join([block] * 60_000)}]}}',
    }


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[HttpProcess]:
    limits = {"script_compute_seconds": COMPUTE}
    async with big_backend(answers()) as url, http_process(env=configured({"big": {"url": url}}, **limits)) as running:
        caller = await running.caller()
        await caller.value(
            "codemode_execute", code="await mcp.call_tool('big', 'echo', {})"
        )  # all is loaded, and connected
        yield running


@pytest.mark.parametrize("what", TABLE)
async def test_a_hostile_value_delays_no_other_script_and_its_author_gets_an_error(
    what: str, endpoint: HttpProcess
) -> None:
    hostile = TABLE[what]
    code = f"from typing import Any\n{hostile.code}"
    caller = await endpoint.caller()
    with cost_for_others(endpoint) as cost:
        began = time.monotonic()
        async with asyncio.timeout(BOUND):
            result: dict[str, Any] = await caller.call("codemode_execute", code=code)
        took = time.monotonic() - began
    record_figure(
        f"{what}: the longest wait of another {cost.longest_wait * 1000:.0f} ms, memory +{cost.growth >> 20} MiB "
        f"(promised: 250 ms, 64 MiB), the script took {took:.1f} s"
    )
    assert hostile.told in result["content"][0]["text"]
    assert len(result["content"][0]["text"]) < 1 << 20
    assert cost.longest_wait < LONGEST_WAIT
    assert cost.growth < MOST_GROWTH
