"""The overview: metrics over time, slow requests, errors, and pending questions."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect

from support.callers.http_process import HttpCaller
from support.console.running_console import Console, open_page, puppet, row, show

pytestmark = pytest.mark.asyncio(loop_scope="package")

MARKUP = '<img src=/pwned.png onerror="window.__pwned=1"><b>no bread</b>'
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"puppet": puppet(tmp_path_factory.mktemp("puppet"))}


def plot(page: Page, name: str) -> Locator:
    return page.locator(f'[data-testid="plot"][data-name="{name}"]')


async def call(caller: HttpCaller, tool: str, /, **args: Any) -> None:
    await caller.call("execute_tool", server="puppet", tool=tool, args=args)


async def test_the_overview_shows_metrics_lists_and_pending_work_as_text(
    context: BrowserContext, console: Console, caller: HttpCaller
) -> None:
    await call(caller, "bake")
    await call(caller, "speak", result={"isError": True, "content": [{"type": "text", "text": MARKUP}]})
    question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": FORM}}
    await call(caller, "asks", ask=question)
    page = await open_page(context, console.origin, "overview")
    await expect(plot(page, "requests").locator("strong")).to_have_text(re.compile(r"^[1-9]\d*$"))
    await expect(plot(page, "errors").locator("strong")).to_have_text("1")
    await expect(plot(page, "waiting").locator("strong")).to_have_text("1")
    await expect(plot(page, "memory").locator("strong")).to_have_text(re.compile(r"^\d+ MB$"))
    line = plot(page, "requests").locator("path").last
    await expect(line).to_have_attribute("d", re.compile(r"^M\d"))
    drawing = plot(page, "errors").get_by_role("img")
    await expect(drawing).to_have_attribute("aria-label", re.compile("Errors since .*: highest 1 at"))
    failed = page.get_by_test_id("failed")
    await expect(failed).to_contain_text("<b>no bread</b>")
    await expect(page.get_by_test_id("slow")).to_contain_text("bake")
    await expect(page.get_by_test_id("waiting").get_by_role("link", name="Answer 1 question")).to_be_visible()
    assert await page.evaluate("() => window.__pwned") is None
    assert await page.locator("img[src*=pwned]").count() == 0
    await failed.get_by_role("link").first.click()
    await expect(page.get_by_test_id("waterfall-row")).to_have_count(1)
    await expect(row(page, "speak")).to_be_visible()


async def test_the_overview_continues_while_it_is_visible(page: Page, caller: HttpCaller) -> None:
    await show(page, "Overview")
    shown = plot(page, "requests").locator("strong")
    await expect(shown).to_have_text(re.compile(r"^\d+$"))
    before = int(await shown.inner_text())
    await asyncio.gather(*(call(caller, "bake") for _ in range(3)))
    await expect(shown).not_to_have_text(str(before), timeout=60_000)
    assert int(await shown.inner_text()) >= before + 3
