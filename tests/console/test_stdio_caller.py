"""A caller on standard input and output whose emceepee also has a console."""

import asyncio
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from support.callers.emceepee_process import configured, emceepee
from support.console.chromium import Watch
from support.console.running_console import LoginLinks, bars, live, puppet, row, show

pytestmark = pytest.mark.asyncio(loop_scope="package")


async def test_the_console_shows_the_calls_of_the_caller_on_stdio(browser: Browser, tmp_path: Path) -> None:
    environment = configured({"puppet": puppet(tmp_path)})
    log: list[str] = []
    watch = Watch()
    async with emceepee("--console", "0", env=environment, stderr=asyncio.subprocess.PIPE) as caller:
        reading = asyncio.create_task(read(caller.process, log))
        await caller.initialize()
        context = await browser.new_context()
        await watch.over(context)
        page = await context.new_page()
        await page.goto(await LoginLinks(log).next())
        await live(page)
        question = {
            "message": "Who?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
        asked = {"ask": {"method": "elicitation/create", "params": question}}
        arguments = {"server": "puppet", "tool": "who", "args": asked, "on_question": "wait"}
        calling = asyncio.create_task(caller.value("execute_tool", **arguments))
        mine = row(page, "who")
        await expect(mine).to_have_attribute("data-status", "pending")
        await expect(bars(mine, "waiting")).to_have_count(1)
        await show(page, "Questions")
        await page.get_by_label("name").fill("Ann")
        await page.get_by_role("button", name="Accept").click()
        assert (await calling)["value"] == {"action": "accept", "content": {"name": "Ann"}}
        await show(page, "Waterfall")
        await expect(mine).to_have_attribute("data-status", "success")
        await show(page, "Sessions")
        await expect(page.get_by_test_id("session-row").filter(has_text="tests 1")).to_contain_text("stdio")
        watch.end(context)
        await context.close()
        assert await caller.end() == 0
        await reading
    assert watch.found() == []


async def read(process: asyncio.subprocess.Process, log: list[str]) -> None:
    assert process.stderr is not None
    while line := await process.stderr.readline():
        log.append(line.decode())
