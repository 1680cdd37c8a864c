"""A request is found by any part of it and can be copied."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Page, expect

from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller
from support.console.running_console import live, puppet, row, show
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="package")
COMMAND_SECONDS = 60.0


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"puppet": puppet(tmp_path_factory.mktemp("puppet"))}


async def call(caller: HttpCaller, tool: str, /, **args: Any) -> None:
    await caller.call("execute_tool", server="puppet", tool=tool, args=args)


async def copied(page: Page, button: str) -> str:
    await page.evaluate("() => navigator.clipboard.writeText('')")
    await page.get_by_test_id(button).click()
    text = ""

    async def is_copied() -> bool:
        nonlocal text
        text = await page.evaluate("() => navigator.clipboard.readText()")
        return bool(text)

    await eventually(is_copied, what="something is on the clipboard")
    return text


async def test_a_request_is_found_by_its_arguments_and_its_error_but_by_no_secret(
    page: Page, caller: HttpCaller
) -> None:
    await call(caller, "bake", flour="spelt from Ulm", api_key="sk-very-secret")
    await call(caller, "fry", error={"code": -32001, "message": "The pan is too hot."})
    rows, search = page.get_by_test_id("waterfall-row"), page.get_by_test_id("filter-search")
    await search.fill("ulm SPELT puppet")
    await expect(rows).to_have_count(1)
    await expect(row(page, "bake")).to_be_visible()
    await search.fill("pan hot")
    await expect(row(page, "fry")).to_be_visible()
    await expect(rows).to_have_count(1)
    await search.fill("sk-very-secret")
    await expect(rows).to_have_count(0)


async def test_a_filter_is_in_the_address_and_survives_a_reload_and_other_views(page: Page, caller: HttpCaller) -> None:
    await call(caller, "knead", dough="rye & <b>bread</b>")
    await call(caller, "rest")
    rows = page.get_by_test_id("waterfall-row")
    await page.get_by_test_id("filter-search").fill("rye & <b>")
    await page.get_by_test_id("filter-server").select_option("puppet")
    await page.get_by_test_id("filter-status").select_option("success")
    await expect(rows).to_have_count(1)
    await expect(page).to_have_url(re.compile(r"#waterfall\?search=rye\+%26\+%3Cb%3E&server=puppet&status=success$"))
    await page.reload()
    await live(page)
    await expect(rows).to_have_count(1)
    await expect(page.get_by_test_id("filter-search")).to_have_value("rye & <b>")
    await expect(page.get_by_test_id("filter-server")).to_have_value("puppet")
    await show(page, "Servers")
    await show(page, "Waterfall")
    await expect(rows).to_have_count(1)
    await expect(page).to_have_url(re.compile("search=rye"))
    await page.goto(f"{page.url.partition('#')[0]}#waterfall?server=no%20such%20server")
    await expect(page.get_by_text("No request fits these filters.")).to_be_visible()
    await expect(page.get_by_test_id("filter-server")).to_have_value("no such server")
    await page.get_by_role("button", name="Clear filters").click()
    await expect(row(page, "rest")).to_be_visible()
    await expect(page).to_have_url(re.compile("#waterfall$"))


async def test_a_copied_command_repeats_the_request_in_a_shell(
    context: BrowserContext, page: Page, caller: HttpCaller, servers: dict[str, Any], tmp_path: Path
) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    args = {"words": "it's $(touch pwned) `id` \u001b[201~", "n": [1, 2.5, None], "flag": True, "text": "5"}
    await call(caller, "speak", **args)
    await row(page, "speak").click()
    command = await copied(page, "copy-command")
    assert command.startswith("emceepee call puppet speak ")
    assert command.isprintable()
    assert await run_in_shell(command, tmp_path, servers) == args
    assert files_in(tmp_path) == [], "nothing but that was done"


def files_in(folder: Path) -> list[str]:
    return os.listdir(folder)


async def run_in_shell(command: str, folder: Path, servers: dict[str, Any]) -> Any:
    """Return the arguments that the server reports."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | configured(servers) | {"PATH": path, "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        "sh", "-c", command, cwd=folder, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
    assert process.returncode == 0, output
    return json.loads(output)


async def test_a_copied_request_keeps_its_secrets_masked_and_warns_about_them(
    context: BrowserContext, page: Page, caller: HttpCaller
) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    await call(caller, "lock", token="tell-nobody", door="front", result={"content": [], "isError": True})
    await row(page, "lock").click()
    command = await copied(page, "copy-command")
    assert "tell-nobody" not in command
    assert "***" in command
    await expect(page.get_by_test_id("toast").filter(has_text="Secrets in it are masked")).to_be_visible()
    document = json.loads(await copied(page, "copy-json"))
    assert (document["server"], document["name"], document["status"]) == ("puppet", "lock", "error")
    assert (document["arguments"]["token"], document["arguments"]["door"]) == ("***", "front")
    assert document["result"]["isError"] is True


async def test_requests_without_an_equivalent_command_have_no_copy_button_for_one(
    page: Page, caller: HttpCaller
) -> None:
    await caller.value("list_servers")
    await row(page, "list_servers").first.click()
    await expect(page.get_by_test_id("copy-json")).to_be_enabled()
    await expect(page.get_by_test_id("copy-command")).to_be_hidden()
