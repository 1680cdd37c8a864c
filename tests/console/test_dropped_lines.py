"""The network between browser and proxy fails. The page reports it and resumes by itself."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from support.backends.web_backend import WebBackend
from support.callers.http_process import HttpCaller
from support.console.chromium import Watch
from support.console.running_console import Console, a_console, begin_call, live, row, show
from support.faults.fault_proxy import FaultProxy, fault_proxy

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def direct(browser: Browser, web_and_puppet: dict[str, Any]) -> AsyncIterator[Console]:
    async with a_console(browser, web_and_puppet) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def line(direct: Console) -> AsyncIterator[FaultProxy]:
    """The proxy between the browser and emceepee."""
    port = urlsplit(direct.origin).port
    assert port is not None
    async with fault_proxy(port) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def console(browser: Browser, direct: Console, line: FaultProxy) -> Console:
    """The console, at the other end of the proxy."""
    console = Console(direct.endpoint, f"http://127.0.0.1:{line.port}", links=direct.links)
    await console.log_in(browser)
    return console


async def test_events_during_a_disconnect_appear_on_the_page_afterwards(
    page: Page, console: Console, line: FaultProxy, caller: HttpCaller, watch: Watch
) -> None:
    allow_a_broken_line(watch)
    await mark(page)
    await caller.call("execute_tool", server="web", tool="before")
    await expect(row(page, "before")).to_be_visible()
    await line.refuse()
    await expect(page.locator("body")).to_have_attribute("data-feed", re.compile("lost|connecting"))
    await caller.call("execute_tool", server="web", tool="meanwhile")
    await line.listen()
    await live(page)
    await expect(row(page, "before")).to_have_count(1)
    await expect(row(page, "meanwhile")).to_have_count(1)
    await caller.call("execute_tool", server="web", tool="afterwards")
    await expect(row(page, "afterwards")).to_have_count(1)
    await same_page(page)


async def test_a_call_whose_connection_is_cut_shows_its_result(
    page: Page, line: FaultProxy, backend: WebBackend, watch: Watch
) -> None:
    allow_a_broken_line(watch)
    await mark(page)
    calls = len(backend.calls)
    call = await begin_call(page, "web", "wait")
    arrived = await backend.next_call()
    arrived.progress(1, 5)
    await expect(call.get_by_test_id("call-progress")).to_contain_text("5")
    line.reset()
    await live(page)
    arrived.progress(6, 70)
    await expect(call.get_by_test_id("call-progress")).to_contain_text("70")
    await line.refuse()
    await expect(page.locator("body")).to_have_attribute("data-feed", re.compile("lost|connecting"))
    arrived.finish("came through")
    await line.listen()
    await expect(call).to_have_attribute("data-status", "done")
    await expect(call.get_by_test_id("call-result")).to_contain_text("came through")
    assert len(backend.calls) == calls + 1
    await same_page(page)


async def test_an_answer_given_during_a_disconnect_is_not_lost_silently(
    page: Page, line: FaultProxy, caller: HttpCaller, watch: Watch
) -> None:
    allow_a_broken_line(watch)
    question = {"type": "object", "properties": {"name": {"type": "string"}}}
    asked = {"ask": {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": question}}}
    arguments = {"server": "puppet", "tool": "speak", "args": asked, "on_question": "wait"}
    calling = asyncio.create_task(caller.call("execute_tool", **arguments))
    await show(page, "Questions")
    await page.get_by_label("name").fill("Ann")
    await line.refuse()
    await page.get_by_role("button", name="Accept").click()
    await expect(page.get_by_test_id("question-error").or_(page.get_by_test_id("toast")).first).to_be_visible()
    await line.listen()
    await live(page)
    await expect(page.get_by_label("name")).to_have_value("Ann")
    await page.get_by_role("button", name="Accept").click()
    answer = (await calling)["structuredContent"]["value"]
    assert answer == {"action": "accept", "content": {"name": "Ann"}}


def allow_a_broken_line(watch: Watch) -> None:
    watch.allow(r"net::ERR_(CONNECTION|INCOMPLETE|EMPTY|NETWORK|SOCKET)")


async def mark(page: Page) -> None:
    await page.evaluate("() => { window.__mark = true; }")


async def same_page(page: Page) -> None:
    """The page was not reloaded."""
    assert await page.evaluate("() => window.__mark") is True
