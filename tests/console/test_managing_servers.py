"""Servers that a person adds, changes, disables, and removes on the page, by the same rules as every caller."""

import sys
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from support.backends.web_backend import WebBackend
from support.callers.http_process import HttpCaller
from support.console.chromium import Watch
from support.console.running_console import PUPPET, Console, a_console, begin_call, open_page, puppet, show
from support.console.servers_view import add, card, open_form, press, remove

pytestmark = pytest.mark.asyncio(loop_scope="package")

LINES = '"two\\nlines"\n""'  # an argument with a line break, and an empty one
MARKUP = '<img src=/pwned.png onerror="window.__pwned=1"><b>x</b>\'"&/%'


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"fixed": puppet(tmp_path_factory.mktemp("fixed"))}


async def names(caller: HttpCaller) -> set[str]:
    """The servers that can be used."""
    servers = (await caller.value("list_servers"))["servers"]
    return {server["name"] for server in servers if not server.get("disabled")}


async def test_a_server_with_a_url_is_added_used_changed_and_removed_on_the_page(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    await add(page, "added", backend.url)
    await expect(page.get_by_test_id("toast").filter(has_text="added was added")).to_be_visible()
    await expect(card(page, "added")).to_have_attribute("data-status", "connected")
    assert "added" in await names(caller)
    call = await begin_call(page, "added", "echo")
    await expect(call).to_have_attribute("data-status", "done")

    await card(page, "added").get_by_role("button", name="Edit", exact=True).click()
    form = card(page, "added").get_by_test_id("server-form")
    await expect(form.get_by_label("Address")).to_have_value(backend.url)
    await form.get_by_label("Description").fill("Says what it hears")
    await form.get_by_text("Limits").click()
    await form.get_by_label("Time for a call").fill("7")
    await form.get_by_role("button", name="Save").click()
    await expect(form).to_have_count(0)
    [server] = [each for each in (await caller.value("list_servers"))["servers"] if each["name"] == "added"]
    assert server["description"] == "Says what it hears"

    await press(page, "added", "Remove")
    await page.get_by_role("dialog").get_by_role("button", name="Keep it").click()
    assert "added" in await names(caller)
    await remove(page, "added")
    await expect(page.get_by_test_id("toast").filter(has_text="added was removed")).to_be_visible()
    assert "added" not in await names(caller)


async def test_a_server_with_a_program_is_added_on_the_page_and_its_secrets_are_not_shown_again(
    page: Page, caller: HttpCaller, servers: dict[str, Any]
) -> None:
    form = await open_form(page)
    await form.get_by_label("Name", exact=True).fill("program")
    await form.get_by_label("Kind").select_option("command")
    await form.get_by_label("Program").fill(sys.executable)
    offer = servers["fixed"]["args"][-1]
    await form.get_by_label("Arguments").fill(f"-S\n-E\n{PUPPET}\n{offer}\n--token\nt0psecret\n{LINES}")
    await form.get_by_label("Environment").fill("GREETING=hush=hush")
    await form.get_by_role("button", name="Add server").click()
    await expect(form).to_have_count(0)
    await expect(card(page, "program")).to_have_attribute("data-status", "connected")
    await card(page, "program").get_by_role("button", name="Edit", exact=True).click()
    form = card(page, "program").get_by_test_id("server-form")
    await expect(form.get_by_label("Environment")).to_have_value("GREETING=***")
    await expect(form.get_by_label("Arguments")).to_have_value(f"-S\n-E\n{PUPPET}\n{offer}\n--token\n***\n{LINES}")
    await form.get_by_role("button", name="Save").click()
    await expect(form.get_by_text("Write what stands as *** again.").first).to_be_visible()
    await form.get_by_role("button", name="Cancel").click()
    await caller.call("remove_server", name="program")
    await expect(card(page, "program")).to_have_count(0)


async def test_a_server_that_cannot_be_added_is_reported_at_the_form_and_the_input_stays(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    form = await open_form(page)
    await form.get_by_role("button", name="Add server").click()
    await expect(form.get_by_text("Give it a name.")).to_be_visible()
    await expect(form.get_by_label("Name", exact=True)).to_be_focused()
    await form.get_by_label("Name", exact=True).fill("fixed")
    await form.get_by_label("Address").fill(backend.url)
    await form.get_by_role("button", name="Add server").click()
    await expect(page.get_by_test_id("server-form-problem")).to_contain_text('The name "fixed" is in use')
    await form.get_by_label("Name", exact=True).fill("closed")
    await form.get_by_label("Address").fill("http://127.0.0.1:9/mcp")
    await form.get_by_role("button", name="Add server").click()
    await expect(page.get_by_test_id("server-form-problem")).to_contain_text("could not be connected")
    await expect(form.get_by_label("Address")).to_have_value("http://127.0.0.1:9/mcp")
    await form.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_test_id("add-server")).to_be_focused()
    assert "closed" not in await names(caller)


async def test_settings_that_do_not_work_leave_the_server_unchanged(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    await add(page, "steady", backend.url)
    await card(page, "steady").get_by_role("button", name="Edit", exact=True).click()
    form = card(page, "steady").get_by_test_id("server-form")
    await form.get_by_label("Address").fill("http://127.0.0.1:9/mcp")
    await form.get_by_role("button", name="Save").click()
    await expect(form.get_by_test_id("server-form-problem")).to_contain_text("was not changed")
    await form.get_by_role("button", name="Cancel").click()
    call = await begin_call(page, "steady", "echo")
    await expect(call).to_have_attribute("data-status", "done")
    await caller.call("remove_server", name="steady")


async def test_a_disabled_server_is_unavailable_until_it_is_enabled(
    page: Page, caller: HttpCaller, backend: WebBackend
) -> None:
    await add(page, "resting", backend.url)
    await press(page, "resting", "Disable")
    await expect(card(page, "resting")).to_have_attribute("data-status", "disabled")
    assert "resting" not in await names(caller)
    await page.reload()
    await expect(card(page, "resting")).to_have_attribute("data-status", "disabled")
    await press(page, "resting", "Enable")
    await expect(card(page, "resting")).to_have_attribute("data-status", "not_connected")
    assert "resting" in await names(caller)
    await press(page, "resting", "Disable")
    await expect(card(page, "resting")).to_have_attribute("data-status", "disabled")
    await remove(page, "resting")
    await expect(card(page, "resting")).to_have_count(0)


async def test_a_server_of_the_configuration_file_is_marked_and_cannot_be_edited(page: Page) -> None:
    await show(page, "Servers")
    await expect(card(page, "fixed").get_by_text("From the configuration file")).to_be_visible()
    await expect(card(page, "fixed").get_by_role("button", name="Edit", exact=True)).to_be_hidden()
    await expect(card(page, "fixed").get_by_role("button", name="Disable")).to_be_hidden()


async def test_a_server_name_with_markup_stays_text(page: Page, caller: HttpCaller, backend: WebBackend) -> None:
    await add(page, MARKUP, backend.url)
    found = page.get_by_test_id("server-card").filter(has_text="<img src=/pwned.png")
    await expect(found).to_have_count(1)
    await found.get_by_role("button", name="Edit", exact=True).click()
    await found.get_by_role("button", name="Cancel").click()
    await found.get_by_role("button", name="Remove").click()
    await expect(page.get_by_role("dialog")).to_contain_text(f"Remove {MARKUP}?")
    await page.get_by_role("dialog").get_by_role("button", name="Remove server").click()
    await expect(found).to_have_count(0)
    assert await page.evaluate("() => window.__pwned") is None
    assert await page.locator("img[src*=pwned]").count() == 0


async def test_where_tokens_are_required_the_page_may_not_add_programs(browser: Browser) -> None:
    async with (
        a_console(browser, {}, "--token", "a-token-of-some-length") as console,
        console.profile(browser, Watch()) as context,
    ):
        page = await open_page(context, console.origin, "servers")
        form = await open_form(page)
        await form.get_by_label("Name", exact=True).fill("program")
        await form.get_by_label("Kind").select_option("command")
        await form.get_by_label("Program").fill(sys.executable)
        await form.get_by_role("button", name="Add server").click()
        await expect(page.get_by_test_id("server-form-problem")).to_contain_text("--allow-commands")


async def test_a_page_of_another_site_cannot_disable_a_server(console: Console, page: Page) -> None:
    answer = await page.request.post(
        f"{console.origin}/console/disable-server",
        data={"session": "x", "server": "fixed"},
        headers={"sec-fetch-site": "cross-site", "origin": "http://evil.example"},
    )
    assert answer.status in (401, 403)
