"""Calls that a person makes on the page. They survive a reload, and each tab has its own session."""

import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, Page, expect

from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.emceepee_process import configured
from support.callers.http_process import HttpProcess, http_process
from support.console.chromium import Watch
from support.console.running_console import Console, a_console, begin_call, live, open_page, open_tool, puppet, show
from support.faults.fault_proxy import fault_proxy

pytestmark = pytest.mark.asyncio(loop_scope="package")


OFFER = {
    "tools/list": {
        "tools": [
            {
                "name": "speak",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "number": {"type": "number"},
                        "words": {"type": "string"},
                        "sure": {"type": "boolean"},
                        "result": {"type": "object"},
                        "ask": {"type": "object"},
                        "left_out": {"type": "string"},
                    },
                },
            }
        ]
    }
}
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTION = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": NAME}}


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A line for each process of the server "counted"."""
    return tmp_path_factory.mktemp("starts") / "starts"


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def backend() -> AsyncIterator[WebBackend]:
    async with a_web_backend() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def console(
    browser: Browser, backend: WebBackend, starts: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Console]:
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    servers = {
        "web": {"url": backend.url},
        "counted": puppet(tmp_path_factory.mktemp("counted"), OFFER, "--starts", str(starts)),
        "demo": {"command": sys.executable, "args": ["-m", "emceepee.demo"], "env": path},
    }
    async with a_console(browser, servers) as running:
        yield running


async def test_a_call_in_the_console_ends_with_its_result_after_a_reload(page: Page, backend: WebBackend) -> None:
    backend.calls.clear()
    row = await begin_call(page, "web", "wait")
    arrived = await backend.next_call()
    arrived.progress(1, 3)
    await expect(row).to_have_attribute("data-status", "running")
    await page.reload()
    await live(page)
    row = page.get_by_test_id("call-row").first
    await expect(row).to_have_attribute("data-status", "running")
    arrived.progress(4, 60)
    await expect(row.get_by_test_id("call-progress")).to_contain_text("60")
    arrived.finish("kept over the reload")
    await expect(row).to_have_attribute("data-status", "done")
    await expect(row.get_by_test_id("call-result")).to_contain_text("kept over the reload")
    assert len(backend.calls) == 1


async def test_a_real_call_of_five_seconds_survives_a_reload(page: Page) -> None:
    form = await open_tool(page, "demo", "dig")
    await form.get_by_label("seconds").fill("5")
    await form.get_by_label("steps").fill("25")
    await form.get_by_role("button", name="Call").click()
    call = page.get_by_test_id("call-row").first
    await expect(call.get_by_test_id("call-progress")).to_contain_text(re.compile(r"layer \d of 25"))
    session = await own_session(page)
    await page.goto(f"{page.url.partition('#')[0]}#servers/demo")
    await page.reload()
    await live(page)
    await expect(call.get_by_test_id("call-progress")).to_contain_text(re.compile(r"layer 1\d of 25"))
    await expect(call).to_have_attribute("data-status", "done")
    await expect(call.get_by_test_id("call-result")).to_contain_text("Dug through 25 layers in 5 s")
    assert await own_session(page) == session


async def test_a_tool_receives_exactly_the_arguments_of_the_form(page: Page) -> None:
    form = await open_tool(page, "counted", "speak")
    await form.get_by_label("Number").fill("2.5")
    await form.get_by_label("Words").fill("two")
    await form.get_by_label("Sure").check()
    await form.get_by_role("button", name="Call").click()
    call = page.get_by_test_id("call-row").first
    await expect(call).to_have_attribute("data-status", "done")
    text = await call.get_by_test_id("call-result").inner_text()
    assert '{"number":2.5,"words":"two","sure":true}' in "".join(text.split())


async def test_a_failed_call_in_the_console_shows_the_reason(page: Page) -> None:
    failure = {"isError": True, "content": [{"type": "text", "text": "there is no bread"}]}
    form = await open_tool(page, "counted", "speak")
    await form.get_by_label("Result").fill(json.dumps(failure))
    await form.get_by_role("button", name="Call").click()
    call = page.get_by_test_id("call-row").first
    await expect(call).to_have_attribute("data-status", "error")
    await expect(call.get_by_test_id("call-result")).to_contain_text("there is no bread")


async def test_a_call_with_a_question_ends_when_the_question_is_answered_on_the_same_page(page: Page) -> None:
    form = await open_tool(page, "counted", "speak")
    await form.get_by_label("Ask").fill(json.dumps(QUESTION))
    await form.get_by_role("button", name="Call").click()
    call = page.get_by_test_id("call-row").first
    await expect(call).to_have_attribute("data-status", "running")
    await call.get_by_role("link", name="Waits for your answer").click()
    await page.get_by_test_id("question").get_by_label("Name").fill("Ann")
    await page.get_by_role("button", name="Accept").click()
    await show(page, "Servers")
    await expect(call).to_have_attribute("data-status", "done")
    await expect(call.get_by_test_id("call-result")).to_contain_text("Ann")


async def own_session(page: Page) -> str | None:
    """The session of this page, as the page itself shows it."""
    await page.bring_to_front()  # a browser takes its time for tabs that nobody sees
    await show(page, "Sessions")
    return await page.get_by_test_id("session-row").filter(has_text="This page").get_attribute("data-id")


async def test_two_browser_tabs_have_two_sessions(context: BrowserContext, console: Console) -> None:
    tabs = [await open_page(context, console.origin) for _ in range(2)]
    for tab in tabs:
        await tab.bring_to_front()
        await call_echo(tab)
    one, other = [await own_session(tab) for tab in tabs]
    assert one != other
    for tab in tabs:
        await expect(tab.locator(f'[data-id="{one}"]')).to_have_count(1)
        await expect(tab.locator(f'[data-id="{other}"]')).to_have_count(1)


async def call_echo(page: Page) -> None:
    call = await begin_call(page, "web", "echo")
    await expect(call).to_have_attribute("data-status", "done")


async def test_a_duplicated_browser_tab_gets_a_session_of_its_own(
    context: BrowserContext, page: Page, console: Console
) -> None:
    """A browser copies the session storage into the duplicate, which must not take over the session."""
    await call_echo(page)
    session = await own_session(page)
    kept = json.dumps(await page.evaluate("() => ({...sessionStorage})"))
    copy = await context.new_page()
    await copy.add_init_script(f"if (sessionStorage.length === 0) Object.assign(sessionStorage, {kept});")
    await copy.goto(f"{console.origin}/#servers")
    await live(copy)
    await expect(copy.get_by_test_id("call-row")).to_have_count(0)
    await call_echo(copy)
    assert await own_session(copy) not in (session, None)
    await page.reload()
    await live(page)
    assert await own_session(page) == session
    await copy.reload()
    await live(copy)
    assert await own_session(copy) not in (session, None)


async def test_a_browser_tab_that_uses_no_server_connects_none(page: Page, starts: Path) -> None:
    before = lines_in(starts)
    await call_echo(page)
    for view in ("Waterfall", "Questions", "Sessions", "Logs", "Servers"):
        await show(page, view)
    assert lines_in(starts) == before
    await begin_call(page, "counted", "speak")
    await expect(page.get_by_test_id("call-row").first).to_have_attribute("data-status", "done")
    assert lines_in(starts) == before + 1


async def test_after_a_restart_of_the_proxy_the_page_reports_a_new_session(
    browser: Browser, backend: WebBackend
) -> None:
    watch = Watch()
    watch.allow(r"net::ERR_|40[14] (GET|POST) /|status of 40[14]")
    servers = configured({"web": {"url": backend.url}})
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(http_process("--log-level", "warn", env=servers))
        line = await stack.enter_async_context(fault_proxy(port_of(first)))
        before = Console(first, f"http://127.0.0.1:{line.port}")
        await before.log_in(browser)
        context = await stack.enter_async_context(before.profile(browser, watch))
        page = await open_page(context, before.origin)
        await call_echo(page)
        await line.refuse()
        second = await stack.enter_async_context(http_process("--log-level", "warn", env=servers))
        line.upstream = port_of(second)
        await line.listen()
        await page.wait_for_url("**/console/login*")
        await page.goto(await Console(second, before.origin).login_link())
        await live(page)
        await call_echo(page)
        await expect(page.get_by_test_id("toast").filter(has_text="a new one was started")).to_be_visible()


def lines_in(file: Path) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


def port_of(endpoint: HttpProcess) -> int:
    port = urlsplit(endpoint.url).port
    assert port is not None
    return port
