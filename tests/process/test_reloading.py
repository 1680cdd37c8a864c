"""The configuration file of a real `emceepee serve` is edited while it is used."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.callers.emceepee_process import emceepee
from support.callers.http_process import HttpCaller, HttpProcess, http_process, until
from support.server_programs.stdio_entries import stdio_server

EDITS = 20
CALLERS = 4
ONE = stdio_server()
Servers = dict[str, dict[str, Any]]


def write_by_renaming(file: Path, servers: Servers) -> None:
    new = file.with_name(f".{file.name}.swp")
    new.write_text(json.dumps({"mcpServers": servers}))
    new.replace(file)


def write_in_place(file: Path, servers: Servers) -> None:
    file.write_text(json.dumps({"mcpServers": servers}))


def write_in_pieces(file: Path, servers: Servers) -> None:
    text = json.dumps({"mcpServers": servers})
    with file.open("w") as opened:
        for start in range(0, len(text), 20):
            opened.write(text[start : start + 20])
            opened.flush()


async def server_names(caller: HttpCaller) -> list[str]:
    servers = (await caller.value("list_servers"))["servers"]
    return [server["name"] for server in servers if not server.get("disabled")]


async def until_servers(caller: HttpCaller, *names: str) -> None:
    async def holds() -> bool:
        return await server_names(caller) == list(names)

    await until(holds, f"the servers are {names}")


@asynccontextmanager
async def served(file: Path, *arguments: str, **one: Any) -> AsyncIterator[HttpProcess]:
    write_in_place(file, {"one": ONE | one})
    async with http_process("--config", str(file), *arguments) as endpoint:
        yield endpoint


async def pid_of(caller: HttpCaller, server: str) -> int:
    status = await caller.value("get_server_status", server=server)
    return int(status["process"]["pid"])


async def test_twenty_configuration_edits_under_load_fail_no_call_to_an_unchanged_server(tmp_path: Path) -> None:
    """A caller that fails ends the test at once, with its error."""
    file, is_over, answered = tmp_path / "servers.json", asyncio.Event(), [0] * CALLERS
    writers = (write_by_renaming, write_in_place, write_in_pieces)

    async def calls(number: int, caller: HttpCaller) -> None:
        while not is_over.is_set():
            text = f"call {answered[number]} of {number}"
            result = await caller.call("execute_tool", server="one", tool="echo", arguments={"text": text})
            assert not result.get("isError"), result
            assert result["content"][0]["text"] == text
            answered[number] += 1

    def have_all_called(since: list[int]) -> bool:
        return all(now > then for now, then in zip(answered, since, strict=True))

    async with served(file) as endpoint:
        callers = [await endpoint.caller() for _ in range(CALLERS)]
        pids = [await _connected_pid(caller) for caller in callers]
        watcher = await endpoint.caller()
        async with asyncio.TaskGroup() as group:
            for number, caller in enumerate(callers):
                group.create_task(calls(number, caller))
            for number in range(EDITS):
                others = {f"other{number}": ONE, "changing": ONE | {"timeout_ms": 1000 + number}}
                writers[number % len(writers)](file, {"one": ONE} | others)
                before = list(answered)
                await until_servers(watcher, *(["one", "changing", f"other{number}"] if number else ["one", *others]))
                await until(partial(have_all_called, before), "every caller has called since")
            is_over.set()
        assert [await pid_of(caller, "one") for caller in callers] == pids


async def _connected_pid(caller: HttpCaller) -> int:
    await caller.value("list_tools", server="one")
    return await pid_of(caller, "one")


async def test_a_broken_configuration_file_leaves_the_servers_running_and_the_reason_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    async with served(file) as endpoint:
        caller = await endpoint.caller()
        file.write_text('{"mcpServers": {"one": ')
        await until(lambda: any("config_not_reloaded" in line for line in endpoint.log), "it says why")
        assert any(str(file) in line and "not valid JSON" in line for line in endpoint.log)
        listed = await caller.value("list_servers")
        assert [server["name"] for server in listed["servers"]] == ["one"]
        assert "not valid JSON" in listed["configurationProblem"]
        async with endpoint.http.get(f"{endpoint.origin}/readyz") as response:
            assert (response.status, "configuration" in await response.json()) == (200, True)
        write_by_renaming(file, {"two": ONE})
        await until_servers(caller, "two")
        assert "configurationProblem" not in await caller.value("list_servers")


async def test_an_entry_that_is_broken_by_an_edit_disables_its_server_until_it_is_fixed(tmp_path: Path) -> None:
    file, secret = tmp_path / "servers.json", tmp_path / "token"
    broken = ONE | {"env": {"TOKEN": "${file:token}"}}
    async with served(file) as endpoint:
        caller = await endpoint.caller()
        first = await _connected_pid(caller)
        write_by_renaming(file, {"one": ONE, "two": ONE, "bad": broken})
        await until_servers(caller, "one", "two", "bad")
        error = (await caller.call("execute_tool", server="bad", tool="echo"))["structuredContent"]["error"]
        assert f"there is no file {secret}" in error["message"]
        assert any("config_mistake" in line and "server=bad" in line for line in endpoint.log)
        assert "configurationProblem" not in await caller.value("list_servers")
        secret.write_text("s3cret")

        async def works() -> bool:
            result = await caller.call("execute_tool", server="bad", tool="echo", arguments={"text": "back"})
            return not result.get("isError")

        await until(works, "the server is enabled as soon as its secret is there")
        write_by_renaming(file, {"one": ONE, "two": ONE, "bad": broken | {"timeout_ms": "soon"}})

        async def is_disabled() -> bool:
            status = await caller.value("get_server_status", server="bad")
            return "timeout_ms: expected a whole number" in status.get("lastError", "")

        await until(is_disabled, "the mistake disables the server")
        assert await pid_of(caller, "one") == first


async def test_a_changed_server_is_restarted_and_a_disabled_one_is_stopped(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    async with served(file) as endpoint:
        caller = await endpoint.caller()
        first = await _connected_pid(caller)
        write_by_renaming(file, {"one": ONE | {"env": {"NEW": "yes"}}})

        async def is_another() -> bool:
            status = await caller.value("get_server_status", server="one")
            return bool(status["connected"] and status["process"]["pid"] != first)

        await until(is_another, "it runs as another process")
        write_by_renaming(file, {"one": ONE | {"disabled": True}})
        await until_servers(caller)
        write_by_renaming(file, {"one": ONE})
        await until_servers(caller, "one")
        result = await caller.call("execute_tool", server="one", tool="echo", arguments={"text": "back"})
        assert result["content"][0]["text"] == "back"


async def test_a_changed_symbolic_link_to_the_configuration_is_detected(tmp_path: Path) -> None:
    """Kubernetes volumes change this way: the file is a link through a link to a folder."""
    for name, servers in (("..1", {"one": ONE}), ("..2", {"two": ONE}), ("..3", {"three": ONE})):
        (tmp_path / name).mkdir()
        write_in_place(tmp_path / name / "servers.json", servers)
    (tmp_path / "..data").symlink_to("..1")
    file = tmp_path / "servers.json"
    file.symlink_to("..data/servers.json")
    async with http_process("--config", str(file)) as endpoint:
        caller = await endpoint.caller()
        for name, server in (("..2", "two"), ("..3", "three")):
            (tmp_path / "..new").symlink_to(name)
            os.replace(tmp_path / "..new", tmp_path / "..data")
            await until_servers(caller, server)


@pytest.mark.parametrize("workers", [1, 2])
async def test_a_signal_reloads_the_configuration_where_its_file_is_not_watched(tmp_path: Path, workers: int) -> None:
    file = tmp_path / "servers.json"
    async with served(file, "--no-reload", "--workers", str(workers)) as endpoint:
        caller = await endpoint.caller()
        write_by_renaming(file, {"two": ONE})
        assert await server_names(caller) == ["one"]
        endpoint.process.send_signal(signal.SIGUSR1)
        await until_servers(caller, "two")


async def test_instructions_name_the_servers_of_the_changed_configuration(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    async with served(file) as endpoint:
        caller = await endpoint.caller()
        write_by_renaming(file, {"fresh": ONE | {"description": "just added"}})
        await until_servers(caller, "fresh")
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        answer = await HttpCaller(endpoint, {}).request("initialize", hello)
        assert "- fresh: just added" in answer["result"]["instructions"]


async def test_a_caller_on_standard_input_gets_the_changed_servers(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    write_in_place(file, {"one": ONE})
    async with emceepee("--config", str(file)) as caller:
        await caller.initialize()
        write_by_renaming(file, {"one": ONE, "two": ONE})

        async def has_both() -> bool:
            servers = (await caller.value("list_servers"))["servers"]
            return [server["name"] for server in servers] == ["one", "two"]

        await until(has_both, "the new server is there")
