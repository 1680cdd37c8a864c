"""Third-party servers, called through emceepee and directly. The raw JSON must be equal."""

import base64
import json
import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.callers.direct_client import DirectClient, direct_http, direct_sse, direct_stdio
from support.callers.emceepee_process import EmceepeeProcess, emceepee
from support.server_programs.real_servers import everything, python_server
from support.server_programs.stdio_entries import stdio_server
from support.sessions.replies import backend_part
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

LAST_REGISTERED = "simulate-research-query"  # of the tools that server-everything registers after `initialized`
DATA_URI = "data:text/plain;base64,aGVsbG8gd29ybGQ="
# Every tool that answers by itself, and what it is called with.
EVERYTHING_CALLS: dict[str, list[dict[str, Any]]] = {
    "echo": [{"message": "häppy ✓ 🎉 \u2028 \x00"}, {"message": ""}, {}, {"message": 1}],
    "get-annotated-message": [
        {"messageType": kind, "includeImage": with_image}
        for kind in ("error", "success", "debug")
        for with_image in (True, False)
    ],
    "get-env": [{}],
    "get-resource-links": [{}, {"count": 10}, {"count": 11}],
    "get-resource-reference": [{"resourceType": "Text", "resourceId": 3}, {"resourceType": "Blob", "resourceId": 4}],
    "get-structured-content": [{"location": "Chicago"}, {"location": "Atlantis"}],
    "get-sum": [{"a": 0.1, "b": 0.2}, {"a": 9007199254740993, "b": -1e300}],
    "get-tiny-image": [{}],
    "gzip-file-as-resource": [
        {"name": "hello.gz", "data": DATA_URI, "outputType": "resource"},
        {"name": "hello.gz", "data": DATA_URI, "outputType": "resourceLink"},
        {"name": "hello.gz", "data": "ftp://127.0.0.1/"},
    ],
    "toggle-simulated-logging": [{}, {}],
    "toggle-subscriber-updates": [{}, {}],
    "trigger-long-running-operation": [{"duration": 0.1, "steps": 2}],
}
# These ask the client something, or run as a task of the backend's own.
EVERYTHING_ASKS = re.compile(r"trigger-(elicitation|sampling|url)|get-roots-list|simulate-research-query")
UNSTEADY = re.compile(
    r"(?P<clock>\d{1,2}:\d\d:\d\d(\s[AP]M)?)"
    r"|(?P<session>[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    r"|(?P<iso>\d{4}-\d\d-\d\dT[0-9:]+)"
    r'|(?P<mark>,\s*"EMCEEPEE_FAMILY(_MEMBER)?": "[0-9a-f]+")'  # by which emceepee finds its children again
)


def steady(value: Any) -> Any:
    """The value with times of day and session ids replaced: all that may differ between two honest answers."""
    if isinstance(value, dict):
        return {key: steady(_unpacked(item) if key == "blob" else item) for key, item in value.items()}
    if isinstance(value, list):
        return [steady(item) for item in value]
    return UNSTEADY.sub(_named, value) if isinstance(value, str) else value


def _named(found: "re.Match[str]") -> str:
    return "" if found["mark"] else f"<{found.lastgroup}>"


def _unpacked(blob: str) -> str:
    return base64.b64decode(blob, validate=True).decode("latin-1")


@dataclass(frozen=True)
class Pair:
    """One server, connected twice."""

    caller: EmceepeeProcess
    server: str
    direct: DirectClient

    async def assert_same_call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        passed_on = await self.caller.call("execute_tool", server=self.server, tool=tool, args=arguments)
        original = await self.direct.result("tools/call", {"name": tool, "arguments": arguments})
        assert steady(backend_part(passed_on)) == steady(original), (tool, arguments)
        return original

    async def assert_same_list(self, tool: str, method: str, key: str) -> list[dict[str, Any]]:
        passed_on = await self.listed(tool, key)
        original = await self.direct.listed(method, key)
        assert passed_on == original
        return original

    async def listed(self, tool: str, key: str) -> list[dict[str, Any]]:
        """Return emceepee's list, without the prefix of each entry."""
        entries = (await self.caller.value(tool, server=self.server))[key]
        assert {entry["server"] for entry in entries} <= {self.server}
        return [{name: value for name, value in entry.items() if name != "server"} for entry in entries]

    async def names(self, tool: str, key: str) -> set[str]:
        return {entry["name"] for entry in await self.listed(tool, key)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def caller() -> AsyncIterator[EmceepeeProcess]:
    async with emceepee() as running:
        await running.initialize()
        yield running
        assert await running.end() == 0
        assert running.stdout_garbage == []


async def version_after_adding(caller: EmceepeeProcess, name: str, entry: dict[str, Any]) -> str:
    added = await caller.value("add_server", name=name, **entry)
    return str(added["server"]["protocolVersion"])


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=["stdio", "http", "sse"])
async def everywhere(request: pytest.FixtureRequest, caller: EmceepeeProcess) -> AsyncIterator[Pair]:
    """server-everything over each transport, after it has registered its late tools."""
    name = f"everything-{request.param}"
    opened: AbstractAsyncContextManager[DirectClient]
    if request.param == "stdio":
        version = await version_after_adding(caller, name, everything())
        opened = direct_stdio(**everything(), version=version)
    else:
        url = request.getfixturevalue(f"everything_{request.param}")
        version = await version_after_adding(caller, name, {"url": url})
        opened = (direct_http if request.param == "http" else direct_sse)(url, version=version)
    async with opened as direct:
        pair = Pair(caller, name, direct)

        async def late_tools_are_there() -> bool:
            directly = {tool["name"] for tool in await direct.listed("tools/list", "tools")}
            return LAST_REGISTERED in directly & await pair.names("list_tools", "tools")

        await eventually(late_tools_are_there, what="the tools registered after `initialized` are listed")
        yield pair
    await caller.value("remove_server", name=name)


# server-everything.


async def test_the_lists_of_the_everything_server_are_passed_on_unchanged(everywhere: Pair) -> None:
    """This includes annotations, output schemas, execution hints, and all other keys."""
    tools = await everywhere.assert_same_list("list_tools", "tools/list", "tools")
    assert any("outputSchema" in tool for tool in tools)
    assert len(await everywhere.assert_same_list("list_resources", "resources/list", "resources")) >= 7
    assert await everywhere.assert_same_list("list_resource_templates", "resources/templates/list", "resourceTemplates")
    assert len(await everywhere.assert_same_list("list_prompts", "prompts/list", "prompts")) == 4


async def test_the_results_of_every_tool_of_the_everything_server_are_passed_on_unchanged(everywhere: Pair) -> None:
    """There are valid and invalid calls. A tool of a newer server fails here until the test calls it."""
    listed = await everywhere.names("list_tools", "tools")
    assert {name for name in listed if not EVERYTHING_ASKS.match(name)} == set(EVERYTHING_CALLS)
    kinds: set[str] = set()
    for tool, calls in EVERYTHING_CALLS.items():
        for arguments in calls:
            result = await everywhere.assert_same_call(tool, arguments)
            kinds |= {block["type"] for block in result["content"]} | set(result)
    assert kinds == {"text", "image", "resource", "resource_link", "content", "structuredContent", "isError"}


async def test_progress_reaches_the_caller_before_the_result(everywhere: Pair) -> None:
    """Every step arrives in order under the caller's own token."""
    heard_before = len(everywhere.caller.heard)
    arguments = {
        "server": everywhere.server,
        "tool": "trigger-long-running-operation",
        "args": {"duration": 0.2, "steps": 4},
    }
    token = f"token for {everywhere.server}"
    request = {"name": "execute_tool", "arguments": arguments, "_meta": {"progressToken": token}}
    assert "result" in await everywhere.caller.request("tools/call", request)
    heard = everywhere.caller.heard[heard_before:]
    expected = [{"progressToken": token, "progress": step, "total": 4} for step in (1, 2, 3, 4)]
    assert [one["params"] for one in heard if one["method"] == "notifications/progress"] == expected


async def test_text_and_blobs_of_resources_are_passed_on_unchanged(everywhere: Pair) -> None:
    listed = await everywhere.direct.listed("resources/list", "resources")
    dynamic = [f"demo://resource/dynamic/{kind}/7" for kind in ("text", "blob")]
    for uri in [*dynamic, *(entry["uri"] for entry in listed if "/session/" not in entry["uri"])]:
        passed_on = await everywhere.caller.value("read_resource", server=everywhere.server, uri=uri)
        assert steady(passed_on) == steady(await everywhere.direct.result("resources/read", {"uri": uri})), uri


async def test_a_resource_that_a_call_created_is_listed_and_read(everywhere: Pair) -> None:
    """The list was cached. The list_changed notification makes emceepee request it again on every transport."""
    assert "fresh.gz" not in await everywhere.names("list_resources", "resources")
    arguments = {"name": "fresh.gz", "data": DATA_URI, "outputType": "resourceLink"}
    await everywhere.caller.call("execute_tool", server=everywhere.server, tool="gzip-file-as-resource", args=arguments)

    async def is_listed() -> bool:
        return "fresh.gz" in await everywhere.names("list_resources", "resources")

    await eventually(is_listed, what="the new resource is listed")
    uri = "demo://resource/session/fresh.gz"
    passed_on = await everywhere.caller.value("read_resource", server=everywhere.server, uri=uri)
    assert set(passed_on["contents"][0]) == {"uri", "mimeType", "blob"}
    told = await everywhere.caller.value("get_notifications", server=everywhere.server)
    assert "notifications/resources/list_changed" in [one["method"] for one in told["notifications"]]


async def test_an_unknown_resource_is_an_error_that_contains_the_error_of_the_server(everywhere: Pair) -> None:
    uri = "demo://resource/dynamic/text/nothing"
    refused = await everywhere.caller.error("read_resource", server=everywhere.server, uri=uri)
    original = (await everywhere.direct.request("resources/read", {"uri": uri}))["error"]
    assert (refused["code"], refused["details"]["error"]) == ("TOOL_ERR_EXECUTION_FAILED", original)


async def test_prompts_are_passed_on_as_the_server_renders_them(everywhere: Pair) -> None:
    prompts: dict[str, dict[str, str] | None] = {
        "simple-prompt": None,
        "args-prompt": {"city": "Zürich", "state": "ZH"},
        "completable-prompt": {"department": "Sales", "name": "Eve"},
        "resource-prompt": {"resourceType": "Blob", "resourceId": "5"},
    }
    assert await everywhere.names("list_prompts", "prompts") == set(prompts)
    for name, arguments in prompts.items():
        request = {"name": name} | ({} if arguments is None else {"arguments": arguments})
        passed_on = await everywhere.caller.value("get_prompt", server=everywhere.server, **request)
        assert steady(passed_on) == steady(await everywhere.direct.result("prompts/get", request))


async def test_completions_are_passed_on_unchanged(everywhere: Pair) -> None:
    """The completions are for a prompt, a prompt with known arguments, and a resource template."""
    template = "demo://resource/dynamic/text/{resourceId}"
    asked: list[tuple[str, str, str, dict[str, str] | None]] = [
        ("completable-prompt", "department", "", None),
        ("completable-prompt", "name", "", {"department": "Engineering"}),
        ("resource-prompt", "resourceType", "B", None),
        (template, "resourceId", "12", None),
    ]
    for ref, argument, value, context in asked:
        given = {} if context is None else {"context": context}
        passed_on = await everywhere.caller.value(
            "complete", server=everywhere.server, ref=ref, argument=argument, value=value, **given
        )
        named = {"type": "ref/resource", "uri": ref} if ref == template else {"type": "ref/prompt", "name": ref}
        request: dict[str, Any] = {"ref": named, "argument": {"name": argument, "value": value}}
        if context is not None:
            request["context"] = {"arguments": context}
        original = await everywhere.direct.result("completion/complete", request)
        assert passed_on == original["completion"]
        assert passed_on["values"]


# Python servers of the 2026-07-28 era.


async def test_the_time_server_is_passed_on_without_loss(caller: EmceepeeProcess) -> None:
    entry = python_server("mcp-server-time", "--local-timezone", "Europe/Zurich")
    version = await version_after_adding(caller, "time", entry)
    assert version == "2026-07-28"
    async with direct_stdio(**entry, version=version) as direct:
        pair = Pair(caller, "time", direct)
        await pair.assert_same_list("list_tools", "tools/list", "tools")
        await pair.assert_same_call("get_current_time", {"timezone": "Asia/Kathmandu"})
        await pair.assert_same_call("get_current_time", {"timezone": "Mars/Olympus"})
        conversion = {"source_timezone": "Europe/Zurich", "time": "12:30", "target_timezone": "Asia/Tokyo"}
        await pair.assert_same_call("convert_time", conversion)
        await pair.assert_same_call("convert_time", {"time": "noon"})
    await caller.value("remove_server", name="time")


async def test_the_git_server_is_passed_on_without_loss(caller: EmceepeeProcess, tmp_path: Path) -> None:
    """Two equal repositories go through the same reads and writes, one through emceepee and one directly."""
    at = "2026-01-02T03:04:05+00:00"
    env = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at, "HOME": str(tmp_path)}
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    _make_repository(ours, env)
    shutil.copytree(ours, theirs)
    entry = python_server("mcp-server-git")
    version = await version_after_adding(caller, "git", entry | {"env": env})
    steps: list[tuple[str, dict[str, Any]]] = [
        ("git_status", {}),
        ("git_log", {"max_count": 5}),
        ("git_diff_unstaged", {}),
        ("git_add", {"files": ["notes.txt"]}),
        ("git_diff_staged", {}),
        ("git_commit", {"message": "Say more ✓"}),
        ("git_show", {"revision": "HEAD"}),
        ("git_create_branch", {"branch_name": "side"}),
        ("git_checkout", {"branch_name": "side"}),
        ("git_branch", {"branch_type": "local"}),
        ("git_diff", {"target": "HEAD~1"}),
        ("git_reset", {}),
        ("git_show", {"revision": "no-such-revision"}),
    ]
    async with direct_stdio(**entry, env=env, version=version) as direct:
        pair = Pair(caller, "git", direct)
        tools = await pair.assert_same_list("list_tools", "tools/list", "tools")
        assert {tool["name"] for tool in tools} == {tool for tool, _ in steps}
        for tool, arguments in steps:
            step = {"server": "git", "tool": tool, "args": arguments | {"repo_path": str(ours)}}
            passed_on = backend_part(await caller.call("execute_tool", **step))
            original = await direct.result(
                "tools/call", {"name": tool, "arguments": arguments | {"repo_path": str(theirs)}}
            )
            assert json.loads(json.dumps(passed_on).replace(str(ours), str(theirs))) == original, tool
    await caller.value("remove_server", name="git")


def _make_repository(path: Path, env: dict[str, str]) -> None:
    path.mkdir()
    notes = path / "notes.txt"
    notes.write_text("one line\n")
    identity = [("user.name", "Tests"), ("user.email", "tests@example.org")]
    commands = [["init", "-q", "-b", "main"], *(["config", *pair] for pair in identity), ["add", "."]]
    for command in [*commands, ["commit", "-q", "-m", "Begin"]]:
        subprocess.run(["git", *command], cwd=path, env={"PATH": os.environ["PATH"], **env}, check=True)
    notes.write_text("one line\nand another, with ümlauts\n")


# What no real server sends, but the protocol allows.


async def test_unknown_kinds_of_content_are_passed_on_without_loss(caller: EmceepeeProcess) -> None:
    """Audio, `_meta` at every level, unknown block types and fields, numbers beyond 53 bits."""
    version = await version_after_adding(caller, "kinds", stdio_server())
    async with direct_stdio(**stdio_server(), version=version) as direct:
        result = await Pair(caller, "kinds", direct).assert_same_call("kinds", {})
    assert {"audio", "hologram"} <= {block["type"] for block in result["content"]}
    assert {"_meta", "structuredContent", "notInAnySpecification"} <= set(result)
    await caller.value("remove_server", name="kinds")
