"""The other views: events, logs, tasks, timers, and sessions, while they change."""

import re
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from emceepee.replay.recording_reader import read_recording
from support.callers.http_process import HttpCaller
from support.console.running_console import Console, live, puppet, show

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"puppet": puppet(tmp_path_factory.mktemp("puppet"))}


async def say(caller: HttpCaller, line: str) -> None:
    told = {"method": "notifications/message", "params": {"level": "info", "data": line}}
    await caller.call("execute_tool", server="puppet", tool="speak", args={"send": [told]})


async def test_events_and_log_lines_of_several_sessions_are_shown_in_order_of_time(
    page: Page, console: Console
) -> None:
    one, other = await console.endpoint.caller(client="one"), await console.endpoint.caller(client="other")
    for number, caller in enumerate((one, other, one, other, one)):
        await say(caller, f"line {number}")
    for _ in range(2):  # as it happened, and as a page sees it that comes later
        await show(page, "Logs")
        lines = page.get_by_test_id("log-row").filter(has_text=re.compile(r"line \d"))
        await expect(lines).to_have_count(5)
        assert await times_shown(page) == sorted(await times_shown(page), reverse=True)
        await show(page, "Events")
        await expect(page.get_by_test_id("event-row").first).to_be_visible()
        assert await times_shown(page) == sorted(await times_shown(page), reverse=True)
        await page.reload()
        await live(page)
    await one.end()
    await other.end()


async def times_shown(page: Page) -> list[str]:
    """Of every row, from the top. Two rows may be of the same millisecond: their order means nothing."""
    return re.findall(r"\d\d:\d\d:\d\d\.\d\d\d", await page.locator("main").inner_text())


async def test_a_running_task_is_shown_and_can_be_canceled(page: Page, caller: HttpCaller) -> None:
    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"type": "object"}}}
    await caller.call("execute_tool", server="puppet", tool="asks", args={"ask": question})
    await show(page, "Tasks")
    task = page.get_by_test_id("task-row").filter(has_text="asks")
    await expect(task).to_have_attribute("data-status", "working")
    await task.get_by_role("button", name="Cancel task").click()
    await expect(task).to_have_attribute("data-status", "cancelled")
    assert [(each["toolName"], each["status"]) for each in await tasks_of(caller)] == [("asks", "cancelled")]


async def tasks_of(caller: HttpCaller) -> list[dict[str, Any]]:
    return list((await caller.value("list_tasks", include_completed=True))["tasks"])


async def test_the_result_of_a_task_can_be_viewed(page: Page, caller: HttpCaller) -> None:
    result = {"content": [{"type": "text", "text": "kept for later"}]}
    await caller.call("execute_tool", server="puppet", tool="slow", args={"result": result}, timeout_ms=0)
    await show(page, "Tasks")
    task = page.get_by_test_id("task-row").filter(has_text="slow")
    await expect(task).to_have_attribute("data-status", "completed")
    await task.get_by_role("button", name="result").click()
    await expect(task.get_by_test_id("task-result")).to_contain_text("kept for later")


async def test_a_timer_is_shown_and_can_be_deleted(page: Page, caller: HttpCaller) -> None:
    await caller.value("set_timer", duration_ms=600_000, message="turn the bread")
    await show(page, "Timers")
    timer = page.get_by_test_id("timer-row").filter(has_text="turn the bread")
    await expect(timer).to_be_visible()
    await timer.get_by_role("button", name="Delete").click()
    await expect(timer.get_by_role("button", name="Delete")).to_have_count(0)
    assert (await caller.value("list_timers"))["timers"] == []


async def test_a_session_appears_with_its_caller_and_disappears_with_it(page: Page, console: Console) -> None:
    caller = await console.endpoint.caller(client="visitor")
    await show(page, "Sessions")
    mine = page.get_by_test_id("session-row").filter(has_text="visitor 1")
    await expect(mine).to_have_count(1)
    await caller.end()
    await expect(mine).to_have_count(0)


async def test_a_session_can_be_ended_on_the_page(page: Page, console: Console) -> None:
    caller = await console.endpoint.caller(client="guest")
    await show(page, "Sessions")
    mine = page.get_by_test_id("session-row").filter(has_text="guest 1")
    await mine.get_by_role("button", name="End session").click()
    confirmation = page.get_by_role("dialog").get_by_role("button", name=re.compile("End"))
    await confirmation.click()
    await expect(mine).to_have_count(0)
    async with caller.post("ping") as response:
        assert response.status == 404


async def test_a_server_can_be_reconnected_on_the_page(page: Page, caller: HttpCaller) -> None:
    await caller.call("execute_tool", server="puppet", tool="speak")
    await show(page, "Servers")
    row = row_of_caller(page)
    await expect(row.locator(".badge")).to_have_attribute("data-status", "connected")
    before = await row.get_by_text(re.compile(r"pid \d+")).inner_text()
    await row.get_by_role("button", name="Reconnect").click()
    await expect(row.get_by_text(before)).to_have_count(0)
    await expect(row.locator(".badge")).to_have_attribute("data-status", "connected")


def row_of_caller(page: Page) -> Locator:
    """How the server is in the session of the test's caller. A page that shows servers may have one of its own."""
    card = page.locator('[data-testid="server-card"][data-name="puppet"]')
    return card.get_by_role("listitem").filter(has_text=re.compile(r"\btests \d"))


async def test_the_traffic_of_a_server_is_recorded_and_saved_as_a_file(page: Page, caller: HttpCaller) -> None:
    await caller.call("execute_tool", server="puppet", tool="speak")
    await show(page, "Servers")
    row = row_of_caller(page)
    await row.get_by_role("button", name="Record").click()
    save = row.get_by_role("button", name="Stop and save")
    await expect(save).to_be_visible()
    result = {"content": [{"type": "text", "text": "recorded"}], "structuredContent": {"token": "t0ps3cret"}}
    await caller.call("execute_tool", server="puppet", tool="speak", args={"result": result})
    await page.reload()  # a recording is the server's affair, not the page's
    await live(page)
    async with page.expect_download() as saved:
        await save.click()
    download = await saved.value
    assert download.suggested_filename == "recording-puppet.jsonl"
    await expect(save).to_have_count(0)
    (call,) = [each for each in read_recording(await download.path()).exchanges if each.method == "tools/call"]
    assert call.result is not None
    assert (call.result["content"], call.result["structuredContent"]) == (result["content"], {"token": "***"})
