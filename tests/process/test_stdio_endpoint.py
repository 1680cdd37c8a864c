"""A real `emceepee` process on pipes: its answers to valid and invalid input, and its exit."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.callers.emceepee_process import BOUND, EmceepeeProcess, configured, emceepee
from support.programs import printing_emceepee
from support.server_programs.stdio_entries import gone, is_running, pid_in, stdio_server
from support.sessions.replies import backend_part, text_of
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ALL_VERSIONS = (*HANDSHAKE_VERSIONS, "2026-07-28")
FORTY_MEGABYTES = 40_000_000
PING = {"jsonrpc": "2.0", "method": "ping"}


Callers = dict[str, EmceepeeProcess]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def callers() -> AsyncIterator[Callers]:
    """One emceepee a protocol version, for all tests that must leave it well; each has the backend "small"."""
    env = configured({"small": stdio_server()})
    async with AsyncExitStack() as running:
        found = {version: await running.enter_async_context(emceepee(env=env)) for version in ALL_VERSIONS}
        await asyncio.gather(*(caller.initialize(version) for version, caller in found.items()))
        yield found
        assert [caller.stdout_garbage for caller in found.values()] == [[]] * len(found)


async def is_well(caller: EmceepeeProcess) -> bool:
    return "result" in await caller.request("tools/list")


# Input that is not as it should be.


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_invalid_lines_on_stdin_get_json_rpc_errors_and_the_process_continues(
    version: str, callers: Callers
) -> None:
    """Each kind of bad line is answered with its own code, and the next request is served."""
    caller = callers[version]
    bad_lines = {
        b"{not json": (None, -32700),
        b'"\xff\xfe': (None, -32700),
        b"[" * 100_000: (None, -32700),
        b"42": (None, -32600),
        b'{"id":7,"method":"ping"}': (7, -32600),
        b'{"jsonrpc":"1.0","id":8,"method":"ping"}': (8, -32600),
        b'{"jsonrpc":"2.0","id":9}': (9, -32600),
        b'{"jsonrpc":"2.0","id":"ten","method":10}': ("ten", -32600),
        b'{"jsonrpc":"2.0","id":11,"method":"ping","params":[]}': (11, -32600),
        b'{"jsonrpc":"2.0","id":null,"method":"ping"}': (None, -32600),
        b'{"jsonrpc":"2.0","id":true,"method":"ping"}': (None, -32600),
    }
    for line, (key, code) in bad_lines.items():
        caller.send_line(line)
        answer = await caller.next_heard()
        assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", key, code), line[:60]
        assert await is_well(caller)


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_empty_lines_and_notifications_on_stdin_get_no_response(version: str, callers: Callers) -> None:
    """The next output is the response to the request after them."""
    caller = callers[version]
    before = list(caller.heard)
    for line in (b"", b"   ", b"\r", b'{"jsonrpc":"2.0","id":99,"result":{}}', b'{"jsonrpc":"2.0","method":"x/y"}'):
        caller.send_line(line)
    assert await is_well(caller)
    assert caller.heard == before


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_an_unknown_method_on_stdin_is_answered_with_method_not_found(version: str, callers: Callers) -> None:
    assert (await callers[version].request("no/such/method", {}))["error"]["code"] == -32601
    assert await is_well(callers[version])


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_an_unknown_tool_and_a_malformed_call_on_stdin_are_invalid_params(version: str, callers: Callers) -> None:
    calls: list[dict[str, Any]] = [{"name": "list_server"}, {"name": 1}, {}, {"name": "list_servers", "arguments": []}]
    for params in calls:
        assert (await callers[version].request("tools/call", params))["error"]["code"] == -32602, params
    assert await is_well(callers[version])


# Batches.


async def test_a_batch_on_stdin_is_served_for_the_one_version_with_batches(callers: Callers) -> None:
    """Requests are answered together, notifications not at all, a bad entry with its error."""
    batch = [PING | {"id": "a"}, {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}, 3, PING | {"id": 2}]
    caller = callers["2025-03-26"]
    caller.send_line(json.dumps(batch).encode())
    answers = {one["id"]: one.get("error", {}).get("code") for one in await caller.next_heard()}
    assert answers == {"a": None, None: -32600, 2: None}
    assert await is_well(caller)


@pytest.mark.parametrize("version", [version for version in ALL_VERSIONS if version != "2025-03-26"])
async def test_a_batch_on_stdin_is_rejected_for_every_other_version(version: str, callers: Callers) -> None:
    caller = callers[version]
    caller.send_line(json.dumps([PING | {"id": 1}]).encode())
    assert (await caller.next_heard())["error"]["code"] == -32600
    assert await is_well(caller)


async def test_a_batch_before_initialize_is_rejected() -> None:
    async with emceepee() as caller:
        caller.send_line(json.dumps([PING | {"id": 1}]).encode())
        assert (await caller.next_heard())["error"]["code"] == -32600
        assert (await caller.initialize("2025-03-26"))["result"]["protocolVersion"] == "2025-03-26"
        assert await is_well(caller)


# Unusual but valid.


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_an_unpaired_surrogate_is_served_in_both_directions(version: str, callers: Callers) -> None:
    """A truncated emoji in an argument or a result costs that character, not the call."""
    arguments = {"server": "small", "tool": "echo", "args": {"text": "before \ud83d after"}}
    echoed = text_of(await callers[version].call("execute_tool", **arguments))
    answered = text_of(await callers[version].call("execute_tool", server="small", tool="surrogate"))
    for text in (echoed, answered):
        assert len(text) == len("before ? after")
        assert text.startswith("before ")
        assert text.endswith(" after")


async def test_a_line_of_forty_megabytes_is_served_in_both_directions(callers: Callers) -> None:
    """Four such lines pass through emceepee, to the backend and back, and none is lost or slow."""
    caller, sent = callers["2025-11-25"], "x" * FORTY_MEGABYTES
    async with asyncio.timeout(30):
        result = await caller.call("execute_tool", server="small", tool="echo", args={"text": sent})
    assert text_of(result) == sent
    assert await is_well(caller)


async def test_printed_text_does_not_reach_standard_output() -> None:
    """Printed text, by any means, goes to standard error instead."""
    async with emceepee(entry=(printing_emceepee.__file__,), stderr=asyncio.subprocess.PIPE) as caller:
        await caller.initialize()
        assert await caller.value("list_servers") == {"servers": []}
        assert await caller.end() == 0
        assert caller.process.stderr is not None
        printed = await asyncio.wait_for(caller.process.stderr.read(), BOUND)
        assert caller.stdout_garbage == []
        assert caller.heard == []
        assert {b"printed", b"written to descriptor 1", b"printed by a child"} <= set(printed.splitlines())


async def test_standard_input_may_be_a_regular_file(tmp_path: Path) -> None:
    """Requests that were written down beforehand are answered in full, then the process ends."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_servers", "arguments": {}}},
    ]
    requests, answers = tmp_path / "requests", tmp_path / "answers"
    requests.write_text("\n".join(map(json.dumps, messages)))  # the last line without its end
    with requests.open("rb") as stdin, answers.open("wb") as stdout:
        process = await asyncio.create_subprocess_exec(sys.executable, "-m", "emceepee", stdin=stdin, stdout=stdout)
        assert await asyncio.wait_for(process.wait(), BOUND) == 0
    answered = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [one["id"] for one in answered] == [1, 2]
    assert answered[1]["result"]["structuredContent"] == {"servers": []}


@pytest.mark.parametrize("end", ["stdin", "stdout"])
async def test_standard_input_and_output_may_be_the_null_device(end: str) -> None:
    """A supervisor may start it so. It exits by itself and does not crash."""
    null, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee"),
        stdin=null if end == "stdin" else pipe,
        stdout=null if end == "stdout" else pipe,
    )
    request = json.dumps(PING | {"id": 1}).encode() + b"\n"
    answer, _ = await asyncio.wait_for(process.communicate(request if end == "stdout" else None), BOUND)
    assert process.returncode == 0
    assert not answer


# Eras.


@pytest.mark.parametrize("version", HANDSHAKE_VERSIONS)
async def test_every_handshake_version_is_accepted_and_served_on_stdin(version: str, callers: Callers) -> None:
    caller = callers[version]
    assert caller.hello["result"]["protocolVersion"] == version
    assert (await caller.request("ping"))["result"] == {}
    listed = (await caller.request("tools/list"))["result"]["tools"]
    assert "execute_tool" in [tool["name"] for tool in listed]
    result = await caller.call("execute_tool", server="small", tool="echo", args={"text": version})
    assert backend_part(result) == {"content": [{"type": "text", "text": version}]}


async def test_the_2026_07_28_version_is_discovered_and_served_without_a_handshake(callers: Callers) -> None:
    caller = callers["2026-07-28"]
    assert "2026-07-28" in caller.hello["result"]["supportedVersions"]
    listed = (await caller.request("tools/list"))["result"]["tools"]
    assert "execute_tool" in [tool["name"] for tool in listed]
    result = await caller.call("execute_tool", server="small", tool="echo", args={"text": "hello"})
    assert (result["resultType"], text_of(result)) == ("complete", "hello")


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_the_first_tool_call_starts_the_configured_backends(version: str, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    async with emceepee(env=configured({"lazy": stdio_server(f"marker={marker}")})) as caller:
        await caller.initialize(version)
        await caller.value("list_servers")
        assert is_running(await pid_in(marker))


# SocketPairs.


@pytest.mark.parametrize("how", ["end of input", "SIGINT", "SIGTERM"])
async def test_emceepee_on_stdin_exits_with_code_0_and_leaves_no_process(how: str, tmp_path: Path) -> None:
    """The backends are ready, still silent, or ignore termination, and some have grandchildren."""
    servers = {
        "good": stdio_server(f"marker={tmp_path / 'good'}"),
        "forking": stdio_server(f"marker={tmp_path / 'forking'}", f"forks={tmp_path / 'grandchild'}"),
        "dropping": stdio_server(
            f"marker={tmp_path / 'dropping'}", f"forks={tmp_path / 'stubborn grandchild'}", "stubborn"
        ),
        "silent": stdio_server(f"marker={tmp_path / 'silent'}", "silent"),
        "deaf": stdio_server(f"marker={tmp_path / 'deaf'}", "silent", "deaf"),
    }
    async with emceepee(env=configured(servers)) as caller:
        await caller.initialize()
        await caller.value("execute_tool", server="good", tool="kinds")
        names = [*servers, "grandchild", "stubborn grandchild"]
        pids = [await pid_in(tmp_path / name) for name in names]
        assert all(map(is_running, pids))
        match how:
            case "end of input":
                assert await caller.end() == 0
            case _:
                caller.process.send_signal(signal.Signals[how])
                assert await asyncio.wait_for(caller.process.wait(), BOUND) == 0
        await gone(*pids)


@pytest.mark.parametrize("how", ["end of input", "SIGTERM"])
async def test_emceepee_leaves_no_process_behind_when_a_server_was_just_being_added(how: str, tmp_path: Path) -> None:
    """Only the call that adds the server refers to it. Its process is stopped all the same."""
    marker = tmp_path / "half added"
    async with emceepee() as caller:
        await caller.initialize()
        adding = {
            "name": "add_server",
            "arguments": {"name": "late", **stdio_server("silent", "deaf", f"marker={marker}")},
        }
        caller.send_line(json.dumps({"jsonrpc": "2.0", "id": "add", "method": "tools/call", "params": adding}).encode())
        pid = await pid_in(marker)
        if how == "SIGTERM":
            caller.process.terminate()
            assert await asyncio.wait_for(caller.process.wait(), BOUND) == 0
        else:
            assert await caller.end() == 0
        await gone(pid)


async def test_emceepee_on_stdin_exits_when_its_output_is_closed(tmp_path: Path) -> None:
    """A caller that closed its end of the pipe is gone, even if it still writes. The backends stop as well."""
    marker = tmp_path / "backend"
    async with emceepee(env=configured({"small": stdio_server(f"marker={marker}")})) as caller:
        await caller.initialize()
        await caller.value("list_servers")
        backend = await pid_in(marker)
        caller.process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]  # no public way

        def has_ended() -> bool:
            if caller.process.returncode is None:
                caller.send_line(json.dumps(PING | {"id": 1}).encode())
            return caller.process.returncode is not None

        await eventually(has_ended, what="emceepee has ended")
        assert caller.process.returncode == 0
        await gone(backend)


@pytest.mark.parametrize("state", ["memory", "sqlite"])
async def test_an_unknown_server_is_reported_as_possibly_lost_with_an_earlier_run_only_where_possible(
    tmp_path: Path, state: str
) -> None:
    env = {"XDG_STATE_HOME": str(tmp_path), "EMCEEPEE_STATE": state}
    async with emceepee(env=env) as caller:
        await caller.initialize()
        message = (await caller.error("execute_tool", server="b", tool="echo"))["message"]
        assert ("Servers added in an earlier run are gone" in message) is (state == "memory")
        assert ("--attach auto" in message) is (state == "memory")
        await caller.value("add_server", name="demo", **stdio_server())
        message = (await caller.error("execute_tool", server="b", tool="echo"))["message"]
        assert "earlier run" not in message
