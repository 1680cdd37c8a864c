"""The waterfall during calls: rows appear, bars grow, and every detail of a request can be opened."""

import asyncio
import json
import operator
import re
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect

from support.backends.web_backend import WebBackend
from support.callers.http_process import HttpCaller
from support.console.running_console import Console, bars, open_page, row
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest.fixture(scope="module")
def servers(web_and_puppet: dict[str, Any]) -> dict[str, Any]:
    return web_and_puppet


def call(caller: HttpCaller, server: str, tool: str, /, **more: Any) -> "asyncio.Task[dict[str, Any]]":
    return asyncio.create_task(caller.call("execute_tool", server=server, tool=tool, **more))


async def width_of(bar: Locator) -> float:
    box = await bar.bounding_box()
    return box["width"] if box else 0.0


async def test_a_waterfall_row_appears_with_the_call_grows_with_it_and_ends_with_it(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    calling = call(caller, "web", "wait")
    arrived = await backend.next_call()
    mine = row(page, "wait")
    await expect(mine).to_have_attribute("data-status", "pending")
    bar = bars(mine, "call")
    seen = await width_of(bar)

    async def has_grown() -> bool:
        return await width_of(bar) > seen

    await eventually(has_grown, what="the bar of a pending call grows")
    arrived.finish("enough")
    await expect(mine).to_have_attribute("data-status", "success")
    assert (await calling)["content"][0]["text"] == "enough"


async def test_tool_errors_and_protocol_errors_are_shown(page: Page, caller: HttpCaller) -> None:
    failure = {"content": [{"type": "text", "text": "out of bread"}], "isError": True}
    await call(caller, "puppet", "fails-in-a-result", args={"result": failure})
    await call(caller, "puppet", "fails-as-an-error", args={"error": {"code": -32001, "message": "out of order"}})
    for name, words in (("fails-in-a-result", "out of bread"), ("fails-as-an-error", "out of order")):
        await expect(row(page, name)).to_have_attribute("data-status", "error")
        await row(page, name).click()
        await expect(page.get_by_test_id("request-detail")).to_contain_text(words)


async def test_a_call_that_became_a_task_continues_in_the_waterfall(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    promoted = await call(caller, "web", "wait", timeout_ms=0)
    task_id = promoted["structuredContent"]["proxy_task"]["task_id"]
    arrived = await backend.next_call()
    mine = row(page, "wait")
    await expect(mine).to_have_attribute("data-status", "pending")
    await expect(mine).to_contain_text(re.compile("task", re.IGNORECASE))
    arrived.finish()
    await expect(mine).to_have_attribute("data-status", "success")
    await mine.click()
    await page.get_by_test_id("request-detail").get_by_role("link", name="Task").click()
    task = page.locator(f'[data-testid="task-row"][data-id="{task_id}"]')
    await expect(task).to_have_attribute("data-status", "completed")


async def test_nested_bars_show_the_waits_of_a_call(page: Page, console: Console, backend: WebBackend) -> None:
    lazy = await console.endpoint.caller(emceepee_connect="on-use")
    await call(lazy, "web", "first-use")
    await expect(bars(row(page, "first-use"), "connecting")).to_have_count(1)
    await expect(bars(row(page, "first-use"), "call")).to_have_count(1)
    backend.sessions.clear()
    await call(lazy, "web", "after-a-restart")
    await expect(bars(row(page, "after-a-restart"), "retry")).to_have_count(1)
    question = {"method": "elicitation/create", "params": {"message": "Go on?", "requestedSchema": {"type": "object"}}}
    asking = call(lazy, "puppet", "asks-first", args={"ask": question}, on_question="wait")
    await expect(bars(row(page, "asks-first"), "waiting")).to_have_count(1)
    (asked,) = (await until_asked(lazy))["requests"]
    await lazy.value("respond_to_elicitation", request_id=asked["requestId"], action="decline")
    await asking
    await expect(row(page, "asks-first")).to_have_attribute("data-status", "success")
    await lazy.end()


async def test_details_of_uncertain_origin_are_drawn_as_unsure_until_the_other_call_ends(
    page: Page, caller: HttpCaller
) -> None:
    """Over standard input and output, questions and log lines do not name their call."""
    await call(caller, "puppet", "speaks-alone", args={"stderr": "nobody else is here"})
    holding = call(caller, "puppet", "lasts", args={"hold": "it"}, on_question="wait")
    await expect(row(page, "lasts")).to_have_attribute("data-status", "pending")
    await call(caller, "puppet", "speaks-too", args={"stderr": "somebody said this"})
    question = {"method": "elicitation/create", "params": {"message": "Well?", "requestedSchema": {"type": "object"}}}
    asking = call(caller, "puppet", "asks-too", args={"ask": question}, on_question="wait")
    for name in ("lasts", "asks-too"):
        await expect(bars(row(page, name), "maybe_waiting")).to_have_count(1)
    await call(caller, "puppet", "releases", args={"release": "it"})
    await holding
    await expect(bars(row(page, "asks-too"), "waiting")).to_have_count(1)
    await expect(bars(row(page, "lasts"), "maybe_waiting")).to_have_count(0)
    (asked,) = (await until_asked(caller))["requests"]
    await caller.value("respond_to_elicitation", request_id=asked["requestId"], action="decline")
    await asking
    logs = page.get_by_test_id("detail-logs")
    await row(page, "speaks-too").click()
    await expect(logs).to_contain_text(re.compile("maybe another call.*somebody said this"))
    await row(page, "speaks-alone").click()
    await expect(logs).to_contain_text("stderrnobody else is here")


async def test_the_calls_of_a_script_are_nested_below_it(page: Page, caller: HttpCaller, backend: WebBackend) -> None:
    # The names are composed, because a search also covers a script.
    code = """
inner = "inner"
await mcp.call_tool("puppet", f"{inner}-first", {"result": {"content": []}})
await mcp.call_tool("web", "wait")
try:
    await mcp.call_tool("puppet", f"{inner}-last", {"result": {"content": [], "isError": True}})
except LookupError:
    pass
"""
    running = asyncio.create_task(caller.call("codemode_execute", code=code))
    arrived = await backend.next_call()
    await call(caller, "puppet", "outside-call", args={"result": {"content": []}})
    script, outside = row(page, "codemode_execute"), row(page, "outside-call")
    await expect(outside).to_be_visible()
    await expect(script).to_have_attribute("data-status", "pending")
    arrived.finish()
    assert (await running)["structuredContent"]["success"]
    shown = page.get_by_test_id("waterfall-row")
    inner = ["inner-first", "wait", "inner-last"]
    await expect(row(page, "inner-last")).to_have_attribute("data-status", "error")
    places = [await place_of(row(page, name)) for name in ("outside-call", "codemode_execute", *inner)]
    assert places == sorted(places, key=operator.itemgetter(1)), "from above to below"
    lefts = [left for left, _ in places]
    assert (lefts[0], set(lefts[2:])) == (lefts[1], {lefts[2]})
    assert lefts[2] > lefts[1]
    await page.get_by_test_id("filter-search").fill("inner-")
    await expect(shown).to_have_count(2)
    last, first = await place_of(row(page, "inner-last")), await place_of(row(page, "inner-first"))
    assert last[1] < first[1], "newest first, as their script is not shown"


async def place_of(row: Locator) -> tuple[float, float]:
    """Where its label begins, from the left and from above."""
    box = await row.locator(".row-status").bounding_box()
    assert box is not None
    return box["x"], box["y"]


async def until_asked(caller: HttpCaller) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def is_asked() -> bool:
        found.update(await caller.value("get_elicitations"))
        return bool(found["requests"])

    await eventually(is_asked, what="a question is asked")
    return found


async def test_request_details_show_arguments_result_and_log_lines_and_no_secret(
    page: Page, caller: HttpCaller
) -> None:
    said = {"level": "warning", "logger": "kitchen", "data": "the oven is cold"}
    wish = {
        "flour": 500,
        "api_key": "sk-very-secret",
        "nested": {"password": "hunter2"},
        "send": [{"method": "notifications/message", "params": said}],
        "result": {"content": [{"type": "text", "text": "baked a loaf"}]},
    }
    await call(caller, "puppet", "bake", args=wish)
    await row(page, "bake").click()
    await expect(page.get_by_test_id("detail-args")).to_contain_text("500")
    await expect(page.get_by_test_id("detail-args")).to_contain_text("***")
    await expect(page.get_by_test_id("detail-result")).to_contain_text("baked a loaf")
    await expect(page.get_by_test_id("detail-logs")).to_contain_text("the oven is cold")
    assert "sk-very-secret" not in await page.content()
    assert "hunter2" not in await page.content()


async def test_a_request_is_copied_as_a_tool_call(context: BrowserContext, page: Page, caller: HttpCaller) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    await call(caller, "puppet", "copied", args={"list": [1, 2.5, None, "ü"], "result": {"content": []}})
    await row(page, "copied").click()
    await page.get_by_test_id("copy-call").click()
    copied = ""

    async def is_copied() -> bool:
        nonlocal copied
        copied = await page.evaluate("() => navigator.clipboard.readText()")
        return bool(copied)

    await eventually(is_copied, what="something is on the clipboard")
    arguments = {
        "server": "puppet",
        "tool": "copied",
        "args": {"list": [1, 2.5, None, "ü"], "result": {"content": []}},
    }
    assert json.loads(copied) == {"name": "execute_tool", "arguments": arguments}


async def test_rows_are_found_by_text_server_session_and_status(page: Page, console: Console) -> None:
    one, other = await console.endpoint.caller(client="one"), await console.endpoint.caller(client="other")
    await call(one, "web", "needle-one")
    await call(other, "puppet", "needle-two", args={"error": {"code": 1, "message": "no"}})
    await expect(row(page, "needle-two")).to_have_count(1)
    await page.get_by_test_id("filter-search").fill("needle")
    await expect(page.get_by_test_id("waterfall-row")).to_have_count(2)
    for chosen, words, left in (
        ("filter-server", "web", "needle-one"),
        ("filter-status", "Error", "needle-two"),
        ("filter-session", "one 1", "needle-one"),
    ):
        choice = page.get_by_test_id(chosen)
        value = await choice.locator("option", has_text=re.compile(f"^{words}")).get_attribute("value")
        await choice.select_option(value)
        await expect(page.get_by_test_id("waterfall-row")).to_have_count(1)
        await expect(row(page, left)).to_be_visible()
        await choice.select_option("")
        await expect(page.get_by_test_id("waterfall-row")).to_have_count(2)
    await page.get_by_test_id("filter-search").fill("no such thing")
    await expect(page.get_by_test_id("waterfall-row")).to_have_count(0)
    await one.end()
    await other.end()


async def test_a_paused_waterfall_stops_and_catches_up_later(page: Page, caller: HttpCaller) -> None:
    await call(caller, "web", "before-the-pause")
    await expect(row(page, "before-the-pause")).to_be_visible()
    await page.get_by_test_id("pause").click()
    await call(caller, "web", "meanwhile")
    other = await open_page(page.context, page.url.partition("/#")[0])
    await expect(row(other, "meanwhile")).to_be_visible()
    await expect(row(page, "meanwhile")).to_have_count(0)
    await page.get_by_test_id("pause").click()
    await expect(row(page, "meanwhile")).to_be_visible()


async def test_zooming_changes_the_length_of_bars_and_fitting_restores_it(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    calling = call(caller, "web", "wait")
    arrived = await backend.next_call()
    await expect(row(page, "wait")).to_be_visible()
    arrived.finish()
    await calling
    await expect(row(page, "wait")).to_have_attribute("data-status", "success")
    await page.get_by_test_id("filter-search").fill("wait")
    bar = bars(row(page, "wait"), "call")
    await page.get_by_test_id("zoom-fit").click()
    fitted = await width_of(bar)
    for button, is_right in (("zoom-in", operator.gt), ("zoom-out", operator.le)):
        await page.get_by_test_id(button).click()

        async def has_changed(is_right: Any = is_right) -> bool:
            return bool(is_right(await width_of(bar), fitted))

        await eventually(has_changed, what=f"{button} changes the bar from {fitted}")
