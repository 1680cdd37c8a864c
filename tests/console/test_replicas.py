"""Two replicas behind one state: the page of either shows what happens at both."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from support.callers.emceepee_process import configured
from support.callers.http_process import HttpProcess, http_process
from support.console.chromium import Watch
from support.console.running_console import Console, open_page, puppet

pytestmark = pytest.mark.asyncio(loop_scope="package")
FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Your name"}}, "required": ["name"]}
QUESTION = {"method": "elicitation/create", "params": {"message": "Who are you?", "requestedSchema": FORM}}


@pytest_asyncio.fixture(loop_scope="package")
async def replicas(tmp_path: Path) -> AsyncIterator[tuple[HttpProcess, HttpProcess]]:
    env = configured({"curious": puppet(tmp_path)}, replica_lease_seconds=1)
    async with (
        http_process("--log-level", "warn", env=env, state=tmp_path) as one,
        http_process("--log-level", "warn", env=env, state=tmp_path) as other,
    ):
        yield one, other


async def test_a_question_that_is_asked_at_one_replica_is_answered_on_the_page_of_the_other(
    browser: Browser, replicas: tuple[HttpProcess, HttpProcess]
) -> None:
    one, other = replicas
    console = Console(other)
    await console.log_in(browser)
    caller = await one.caller()
    async with console.profile(browser, Watch()) as context:
        page = await open_page(context, console.origin, "questions")
        arguments = {"server": "curious", "tool": "speak", "args": {"ask": QUESTION}, "on_question": "wait"}
        call = asyncio.create_task(caller.call("execute_tool", **arguments))
        question = page.get_by_test_id("question")
        await expect(question).to_have_count(1)
        await question.get_by_label("Your name").fill("Jo")
        await question.get_by_role("button", name="Accept").click()
        answered = (await call)["structuredContent"]["value"]
        assert answered == {"action": "accept", "content": {"name": "Jo"}}
        await expect(question).to_have_count(0)
