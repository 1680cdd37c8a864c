"""Real servers are recorded, and third-party clients get the same answers from the replay."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from emceepee import __file__ as emceepee_file
from emceepee.replay.recording_reader import read_recording
from support.callers.command_line import DEMO, CommandLine
from support.callers.emceepee_process import BOUND, EmceepeeProcess, configured, emceepee
from support.callers.foreign_clients import CLIENTS, a_foreign_client, emceepee_on_stdio
from support.server_programs.real_servers import NODE, everything, everything_on_a_port

INSPECTOR = NODE / "node_modules" / ".bin" / "mcp-inspector"
ERAS = ("legacy", "2026-07-28")


def replayed(file: Path, *options: str) -> dict[str, Any]:
    """The recording as a server."""
    return {"command": sys.executable, "args": ["-m", "emceepee", "replay", str(file), *options]}


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    return CommandLine.in_home(tmp_path)


CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("echo", {"message": "hello"}),
    ("get-sum", {"a": 2, "b": 40}),
    ("trigger-long-running-operation", {"duration": 1, "steps": 5}),
)


async def record_everything(file: Path) -> None:
    """server-everything, which speaks the handshake era."""
    async with emceepee(env=configured({"every": everything() | {"record": str(file)}})) as caller:
        await caller.initialize()
        await caller.value("list_tools", server="every")
        for tool, arguments in CALLS:
            await caller.call("execute_tool", server="every", tool=tool, args=arguments)
        assert await caller.end() == 0


async def test_clients_of_both_eras_get_the_same_tools_and_results_from_the_replay(tmp_path: Path) -> None:
    file = tmp_path / "every.jsonl"
    await record_everything(file)
    exchanges = read_recording(file).exchanges
    tools = next(each.result for each in exchanges if each.method == "tools/list" and each.result)["tools"]
    contents = [each.result["content"] for each in exchanges if each.method == "tools/call" and each.result]
    assert len(contents) == len(CALLS)
    place = replayed(file) | {"env": emceepee_on_stdio()["env"]}
    for name in ("mcp-1", "mcp-2", "typescript-1", "typescript-2"):
        async with a_foreign_client(CLIENTS[name], place) as client:
            assert client.hello["tools"] == [tool["name"] for tool in tools], name
            assert client.hello.get("version") in (CLIENTS[name].version, None), name
            results = [await client.call(tool, **arguments) for tool, arguments in CALLS]
            assert [result["content"] for result in results] == contents, name
            assert results[-1]["steps"] == [1, 2, 3, 4, 5], name
    for era in ("legacy", "modern"):
        shown = await inspected_tools(file, era, home=tmp_path)
        assert shown == [{key: tool[key] for key in seen} for tool, seen in zip(tools, shown, strict=True)]


async def inspected_tools(file: Path, era: str, *, home: Path) -> Any:
    """Return the Inspector's list."""
    entry, code = replayed(file), Path(emceepee_file).parents[1]
    process = await asyncio.create_subprocess_exec(
        *("node", str(INSPECTOR), "--cli", entry["command"], *entry["args"], "-e", f"PYTHONPATH={code}"),
        *("--method", "tools/list", "--protocol-era", era),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"},
    )
    out, err = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode == 0, err
    return json.loads(out)["tools"]


async def test_a_server_over_http_is_recorded_like_a_server_on_pipes(line: CommandLine) -> None:
    with everything_on_a_port("streamableHttp") as port:
        line.config.write_text(json.dumps({"mcpServers": {"every": {"url": f"http://127.0.0.1:{port}/mcp"}}}))
        words = ("call", "every", "get-sum", "a=2", "b=40")
        real = await line.facts(*words, "--record", "every.jsonl")
    line.config.write_text(
        json.dumps({"mcpServers": {"every": replayed(line.home / "every.jsonl") | {"mode": "legacy"}}})
    )
    assert await line.facts(*words) == real


async def book(caller: EmceepeeProcess) -> dict[str, Any]:
    """A table, with what the demo server asks answered; what the call returned in the end."""
    begun = await caller.call("execute_tool", server="demo", tool="book_table", args={"restaurant": "Luigi"})
    task = begun["structuredContent"]["proxy_task"]["task_id"]
    (question,) = (await caller.value("get_elicitations"))["requests"]
    form = {"guests": 4, "time": "19:30", "window": True}
    request = {"request_id": question["requestId"], "action": "accept", "content": form}
    await caller.value("respond_to_elicitation", **request)
    result = await caller.call("get_task_result", task_id=task)
    return {"asked": question["message"], "form": question["requestedSchema"], "content": result["content"][0]}


@pytest.mark.parametrize("recorded_in", ERAS)
async def test_questions_and_progress_are_replayed_within_their_calls_in_either_era(
    recorded_in: str, tmp_path: Path
) -> None:
    file = tmp_path / "demo.jsonl"
    servers: dict[str, Any] = {"demo": DEMO | {"mode": recorded_in, "record": str(file)}}
    async with emceepee(env=configured(servers)) as caller:
        await caller.initialize()
        real = await book(caller)
        await caller.call("execute_tool", server="demo", tool="dig", args={"seconds": 0.2})
        assert await caller.end() == 0
    assert "19:30 by the window" in real["content"]["text"]
    answers = [line for line in file.read_text().splitlines() if '"accept"' in line]
    assert len(answers) == 1
    assert "19:30" not in answers[0]
    for era in ERAS:
        async with emceepee(env=configured({"demo": replayed(file) | {"mode": era}})) as caller:
            await caller.initialize()
            assert await book(caller) == real
            params = {"name": "execute_tool", "arguments": {"server": "demo", "tool": "dig", "args": {"seconds": 0.2}}}
            await caller.request("tools/call", params | {"_meta": {"progressToken": 1}})
            told = [message for message in caller.heard if message.get("method") == "notifications/progress"]
            assert [message["params"]["progress"] for message in told][:5] == [1, 2, 3, 4, 5]
            refused = await caller.error("execute_tool", server="demo", tool="dig", args={"seconds": 9})
            assert 'The nearest is tools/call {"arguments":{"seconds":0.2},"name":"dig"}' in refused["message"]
            assert await caller.end() == 0


async def test_the_replay_command_describes_the_content_of_a_recording(line: CommandLine) -> None:
    await line.says("call", "demo", "add", "a=2", "b=40", "--record", "demo.jsonl")
    shown = await line.says("replay", "demo.jsonl", "--list")
    assert 'tools/call {"arguments":{"a":2,"b":40},"name":"add"} → result' in shown
    facts = await line.facts("replay", "demo.jsonl", "--list")
    assert [row["method"] for row in facts["requests"]] == ["tools/list", "tools/call"]


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["replay", "missing.jsonl"], 2, "missing.jsonl: cannot be read: No such file"),
        (
            ["replay", "diary.txt"],
            2,
            "diary.txt: line 1 is not JSON; a recording is what `emceepee call --record` writes",
        ),
        (
            ["replay", "sum.json"],
            2,
            'sum.json: line 1 is not the first line of a recording, which has "emceepee_recording"',
        ),
        (
            ["call", "demo", "add", "a=1", "b=2", "--record", "diary.txt"],
            2,
            "--record diary.txt: it contains something other than a recording",
        ),
        (["call", "demo", "add", "a=1", "b=2", "--record", "no/where"], 2, "--record no/where: No such file"),
        (["tools", "--record", "a.jsonl"], 2, "--record records one server: specify it"),
        (
            ["tools", "demo", "--record", "a.jsonl", "--url", "localhost:1"],
            2,
            "--record is for servers that this command starts",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_a_failed_recording_or_replay_reports_the_reason(
    words: list[str], code: int, expected: str, line: CommandLine
) -> None:
    (line.home / "diary.txt").write_text("Dear diary,\n")
    (line.home / "sum.json").write_text('{"a": 1}')
    ended, out, err = await line.run(*words)
    assert (ended, out) == (code, "")
    assert expected in err
    assert (line.home / "diary.txt").read_text() == "Dear diary,\n"
