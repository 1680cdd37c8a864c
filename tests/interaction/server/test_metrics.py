"""The metrics text for Prometheus, checked by promtool."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from emceepee.server.metrics import SHORTEST_SECONDS, Metrics, MetricSources
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory_store import MemoryStore
from emceepee.telemetry.label_values import OTHER
from emceepee.telemetry.loop_lag import LoopLag
from emceepee.telemetry.request_metrics import RequestMetrics
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.installation import Installation, an_installation
from support.sessions.request_contexts import call_tool
from support.sessions.scene import a_scene

BOUND = 30.0
MANY = 150  # names, each through a whole call; the unit tests have more


class Watched:
    """An installation whose requests are counted."""

    def __init__(self, installation: Installation, metrics: Metrics) -> None:
        self.installation, self.metrics = installation, metrics

    async def call(self, tool: str, /, **arguments: object) -> None:
        session = await self.installation.directory.find_or_open(SessionKey("local", KeyKind.NAME, "mine"))
        await call_tool({"name": tool, "arguments": arguments}, session, None)

    async def lines(self) -> list[str]:
        await self.installation.clock.advance(SHORTEST_SECONDS)
        return self.metrics.text().decode().splitlines()


@asynccontextmanager
async def watched() -> AsyncIterator[Watched]:
    figures = RequestMetrics(["one"])
    async with an_installation(observers=(figures,)) as installation:
        installation.backend.answers["tools/call"] = lambda params: {"content": [], "isError": params["name"] == "bad"}
        sources = MetricSources(
            requests=figures,
            directory=installation.directory,
            backends=installation.dialer.figures,
            store=MemoryStore(),
            lag=LoopLag(installation.clock),
            clock=installation.clock,
        )
        yield Watched(installation, Metrics(sources, replica="3"))


async def check_with_promtool(text: bytes) -> str:
    """Return the problems that it finds."""
    process = await asyncio.create_subprocess_exec(
        *("promtool", "check", "metrics"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(BOUND):
        said, _ = await process.communicate(text)
    return said.decode() if process.returncode else ""


async def test_the_metrics_text_follows_the_format_rules_of_prometheus() -> None:
    async with watched() as scene:
        scene.installation.dialer.figures.count_restart("one")
        scene.installation.dialer.figures.count_refresh(is_done=True)
        await scene.call("execute_tool", server="one", tool='odd "name"\n\\', args={})
        await scene.call("list_servers")
        lines = await scene.lines()
        assert await check_with_promtool(scene.metrics.text()) == ""
        assert 'emceepee_sessions{replica="3"} 1.0' in lines
        assert 'emceepee_server_restarts_total{replica="3",server="one"} 1.0' in lines
        assert 'emceepee_token_refreshes_total{outcome="success",replica="3"} 1.0' in lines
        assert any(line.startswith("process_resident_memory_bytes{") for line in lines)


async def test_every_metrics_line_contains_the_name_of_its_replica() -> None:
    async with watched() as scene:
        await scene.call("list_servers")
        assert all('replica="3"' in line for line in await scene.lines() if not line.startswith("#"))


async def test_the_metrics_checker_rejects_an_invalid_text() -> None:
    """This proves that the checker would reject an invalid text of emceepee."""
    assert "_total" in await check_with_promtool(b"# HELP a b\n# TYPE a counter\na 1\n")


async def test_calls_are_counted_by_tool_and_status() -> None:
    async with watched() as scene:
        for tool in ("good", "bad", "good"):
            await scene.call("execute_tool", server="one", tool=tool, args={})
        text = "\n".join(await scene.lines())
        count = 'emceepee_requests_total{kind="tool_call",replica="3",server="one",status="%s",tool="%s"} %s'
        assert count % ("success", "good", "2.0") in text
        assert count % ("error", "bad", "1.0") in text
        assert (
            'emceepee_request_duration_seconds_count{kind="tool_call",replica="3",server="one",tool="good"} 2.0' in text
        )


async def test_hostile_names_stay_bounded_in_the_metrics_and_do_not_break_the_format() -> None:
    async with watched() as scene:
        for number in range(MANY):
            await scene.call("execute_tool", server="one", tool=f'{number}"}}\n# TYPE x counter\u202e', args={})
            await scene.call("execute_tool", server=f"made-up-{number}", tool="x", args={})
        lines = await scene.lines()
        assert await check_with_promtool(scene.metrics.text()) == ""
        tools = {found[1] for line in lines if (found := re.search(r'server="one".*tool="([^"]*)"', line))}
        servers = {found[1] for line in lines if (found := re.search(r'[{,]server="([^"]*)"', line))}
        assert len(tools) == 101
        assert servers == {"one", OTHER}


async def test_a_repeated_metrics_request_gets_the_cached_text() -> None:
    async with watched() as scene:
        before = scene.metrics.text()
        await scene.call("list_servers")
        assert scene.metrics.text() == before
        assert "\n".join(await scene.lines()) != before.decode()


async def test_a_caller_reads_the_metrics_of_its_own_session() -> None:
    one = ScriptedBackend()
    one.answers["tools/call"] = lambda _: {"content": []}
    async with a_scene(one=one) as scene:
        await scene.call("execute_tool", server="one", tool="x", args={})
        await scene.error("execute_tool", server="nowhere", tool="x", args={})
        [content] = (await scene.value("read_resource", server="emceepee", uri="emceepee://metrics"))["contents"]
        metrics = json.loads(content["text"])
        assert (metrics["requests"]["success"], metrics["requests"]["error"]) == (1, 1)
        assert {(row["server"], row["name"], row["errors"]) for row in metrics["byName"]} == {
            ("one", "x", 0),
            ("nowhere", "x", 1),
        }
        assert metrics["servers"] == {"connected": 1}
