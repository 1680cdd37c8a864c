"""Servers of the configuration file that cannot be used, and servers that do not exist."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from support.callers.http_process import HttpCaller
from support.console.running_console import begin_call, puppet, show
from support.console.servers_view import card

pytestmark = pytest.mark.asyncio(loop_scope="package")

TRACKER = {"url": "https://tracker.example.com/mcp", "headers": {"Authorization": "Bearer ${NO_SUCH_TOKEN}"}}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    resting = {"url": "https://resting.example.com/mcp", "disabled": True}
    return {"works": puppet(tmp_path_factory.mktemp("works")), "tracker": TRACKER, "resting": resting}


async def test_a_server_disabled_in_the_configuration_file_is_shown_with_instructions_for_enabling_it(
    page: Page, caller: HttpCaller
) -> None:
    await caller.value("list_servers")
    await show(page, "Servers")
    resting = card(page, "resting")
    await expect(resting).to_have_attribute("data-status", "disabled")
    await expect(resting.get_by_text("https://resting.example.com/mcp")).to_be_visible()
    await expect(resting.get_by_text("Disabled in the configuration file")).to_be_visible()
    for button in ("Enable", "Edit", "Remove", "Reconnect"):
        await expect(resting.get_by_role("button", name=button, exact=True)).to_have_count(0)


async def test_a_server_with_a_configuration_error_shows_the_error_and_the_others_work(
    page: Page, caller: HttpCaller
) -> None:
    await caller.value("list_servers")
    await show(page, "Servers")
    await expect(card(page, "tracker")).to_have_attribute("data-status", "error")
    await expect(card(page, "tracker").get_by_text("no variable NO_SUCH_TOKEN").first).to_be_visible()
    call = await begin_call(page, "works", "speak")
    await expect(call).to_have_attribute("data-status", "done")


async def test_the_address_of_an_unknown_server_leads_to_the_known_ones(page: Page, caller: HttpCaller) -> None:
    await caller.value("list_servers")
    await show(page, "Servers")
    await expect(card(page, "works")).to_be_visible()
    await page.evaluate("location.hash = '#servers/doesnotexist'")
    missing = page.get_by_test_id("server-not-found")
    await expect(missing.get_by_role("heading")).to_have_text("No server is called doesnotexist.")
    await expect(page.get_by_test_id("server-card")).to_have_count(0)
    await expect(page.get_by_text("No servers yet.")).to_be_hidden()
    await page.get_by_role("link", name="All servers").click()
    await expect(missing).to_be_hidden()
    await expect(card(page, "works")).to_be_visible()
    await page.evaluate("location.hash = '#servers/resting'")
    await expect(card(page, "resting")).to_be_visible()
    await expect(missing).to_be_hidden()


async def test_the_address_of_an_unknown_server_works_on_a_page_that_just_opened(page: Page) -> None:
    await page.goto(page.url.partition("#")[0] + "#servers/doesnotexist")
    await page.reload()
    await expect(page.get_by_test_id("server-not-found")).to_be_visible()
    await expect(page.get_by_test_id("server-card")).to_have_count(0)
