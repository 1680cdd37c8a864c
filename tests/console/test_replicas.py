"""Two replicas with one state: a person at the page of one controls everything at the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from emceepee.replay.recording_reader import read_recording
from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller, HttpProcess, http_process
from support.console.running_console import Console, live, puppet, show
from support.console.servers_view import add, card, connection_of, edit, press, remove
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="package")
FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Your name"}}, "required": ["name"]}
QUESTION = {"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": FORM}}


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def replicas(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[HttpProcess, HttpProcess]]:
    """The person's replica, and the replica with the callers' sessions."""
    folder = tmp_path_factory.mktemp("replicas")
    env = configured({"curious": puppet(folder)}, replica_lease_seconds=1)
    async with AsyncExitStack() as stack:
        starting = (
            stack.enter_async_context(http_process("--log-level", "warn", env=env, state=folder)) for _ in range(2)
        )
        here, there = await asyncio.gather(*starting)
        yield here, there


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def console(browser: Browser, replicas: tuple[HttpProcess, HttpProcess]) -> Console:
    console = Console(replicas[0])
    await console.log_in(browser)
    return console


@pytest_asyncio.fixture(loop_scope="package")
async def caller(replicas: tuple[HttpProcess, HttpProcess], callers: list[HttpCaller]) -> HttpCaller:
    callers.append(await replicas[1].caller(client="far"))
    return callers[-1]


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def other_backend() -> AsyncIterator[WebBackend]:
    async with a_web_backend() as running:
        yield running


async def servers(caller: HttpCaller) -> dict[str, dict[str, Any]]:
    return {server["name"]: server for server in (await caller.value("list_servers"))["servers"]}


async def hear(caller: HttpCaller, event: str, server: str) -> list[str]:
    """Return the caller's events about the server, up to the expected one."""
    heard: list[str] = []
    while event not in heard:
        told = await caller.value("await_activity", timeout_ms=20_000)
        assert told["events"], f"heard only {heard}"
        heard += [each["type"] for group in told["events"] if group["server"] == server for each in group["events"]]
    return heard


async def echo(caller: HttpCaller, server: str) -> str:
    result = await caller.call("execute_tool", server=server, tool="echo", args={"say": "hello"})
    assert not result.get("isError"), result
    return str(result["content"][0]["text"])


async def test_a_server_added_at_one_replica_is_used_at_the_other_until_it_is_removed(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    await add(page, "new", backend.url)
    await hear(caller, "server_added", "new")
    assert "new" in await servers(caller)
    assert await echo(caller, "new") == '{"say": "hello"}'
    await expect(connection_of(page, "new", "far").locator(".badge")).to_have_attribute("data-status", "connected")
    await remove(page, "new")
    await hear(caller, "server_removed", "new")
    assert "new" not in await servers(caller)
    assert (await caller.error("execute_tool", server="new", tool="echo"))["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
    await expect(card(page, "new")).to_have_count(0)


async def test_changed_settings_apply_at_the_other_replica_and_callers_see_the_same_server(
    page: Page, caller: HttpCaller, backend: WebBackend, other_backend: WebBackend
) -> None:
    await add(page, "moved", backend.url)
    await hear(caller, "server_added", "moved")
    await echo(caller, "moved")
    await edit(page, "moved", Address=other_backend.url)
    heard = await hear(caller, "server_disconnected", "moved")
    assert not {"server_added", "server_removed"} & set(heard)
    other_backend.asked.clear()
    await echo(caller, "moved")
    assert "tools/call" in [method for method, _ in other_backend.asked]
    await edit(page, "moved", Description="Says what it hears")

    async def has_other_words() -> bool:
        return (await servers(caller))["moved"].get("description") == "Says what it hears"

    await eventually(has_other_words, what="the caller reads the new description")
    await remove(page, "moved")
    await hear(caller, "server_removed", "moved")


async def test_a_server_disabled_at_one_replica_is_unavailable_at_the_other_until_it_is_enabled(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    await add(page, "resting", backend.url)
    await hear(caller, "server_added", "resting")
    await press(page, "resting", "Disable")
    await hear(caller, "server_removed", "resting")
    assert (await servers(caller))["resting"]["disabled"]
    await expect(card(page, "resting")).to_have_attribute("data-status", "disabled")
    await press(page, "resting", "Enable")
    await hear(caller, "server_added", "resting")
    assert await echo(caller, "resting") == '{"say": "hello"}'
    await press(page, "resting", "Disable")
    await hear(caller, "server_removed", "resting")
    await remove(page, "resting")
    await expect(card(page, "resting")).to_have_count(0)
    await caller.value("add_server", name="resting", url=backend.url)  # its name is free there, too
    await caller.value("remove_server", name="resting")


async def test_a_server_that_a_caller_added_at_one_replica_is_edited_and_removed_at_the_other_at_once(
    page: Page, caller: HttpCaller, backend: WebBackend, other_backend: WebBackend
) -> None:
    await show(page, "Servers")
    await caller.value("add_server", name="theirs", url=backend.url)
    await edit(page, "theirs", Address=other_backend.url)
    await hear(caller, "server_disconnected", "theirs")
    await remove(page, "theirs")
    await hear(caller, "server_removed", "theirs")
    await caller.value("add_server", name="theirs", url=backend.url)
    await remove(page, "theirs")
    await hear(caller, "server_removed", "theirs")
    await expect(card(page, "theirs")).to_have_count(0)


async def test_a_server_of_a_shared_configuration_file_is_not_removed_at_one_replica(
    page: Page, caller: HttpCaller
) -> None:
    await show(page, "Servers")
    theirs = connection_of(page, "curious", "far")
    await expect(theirs).to_be_visible()
    await remove(page, "curious")
    await expect(page.get_by_test_id("toast").filter(has_text="emceepee servers remove")).to_be_visible()
    await expect(theirs).to_be_visible()


async def test_a_server_at_the_other_replica_is_recorded_and_the_file_is_saved(page: Page, caller: HttpCaller) -> None:
    await caller.call("execute_tool", server="curious", tool="speak")
    await show(page, "Servers")
    row = connection_of(page, "curious", "far")
    await row.get_by_role("button", name="Record").click()
    save = row.get_by_role("button", name="Stop and save")
    await expect(save).to_be_visible()
    result = {"content": [{"type": "text", "text": "recorded"}], "structuredContent": {"token": "t0ps3cret"}}
    await caller.call("execute_tool", server="curious", tool="speak", args={"result": result})
    await page.reload()
    await live(page)
    async with page.expect_download() as saved:
        await save.click()
    download = await saved.value
    (call,) = [each for each in read_recording(await download.path()).exchanges if each.method == "tools/call"]
    assert call.result is not None
    assert (call.result["content"], call.result["structuredContent"]) == (result["content"], {"token": "***"})
    await expect(save).to_have_count(0)


async def test_a_session_at_the_other_replica_is_ended(page: Page, caller: HttpCaller) -> None:
    await show(page, "Sessions")
    theirs = page.get_by_test_id("session-row").filter(has_text="far")
    await theirs.get_by_role("button", name="End session").click()
    await page.get_by_role("dialog").get_by_role("button", name="End session").click()
    await expect(theirs).to_have_count(0)
    async with caller.post("ping") as response:
        assert response.status == 404


async def test_a_question_at_the_other_replica_is_answered(page: Page, caller: HttpCaller) -> None:
    await show(page, "Questions")
    arguments = {"server": "curious", "tool": "speak", "args": {"ask": QUESTION}, "on_question": "wait"}
    call = asyncio.create_task(caller.call("execute_tool", **arguments))
    question = page.get_by_test_id("question")
    await expect(question).to_have_count(1)
    await question.get_by_label("Your name").fill("Jo")
    await question.get_by_role("button", name="Accept").click()
    answered = (await call)["structuredContent"]["value"]
    assert answered == {"action": "accept", "content": {"name": "Jo"}}
    await expect(question).to_have_count(0)
