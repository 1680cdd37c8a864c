"""Resources and prompts of a server on the page are listed, read, and filled in."""

import os
import sys
from typing import Any

import pytest
from playwright.async_api import Locator, Page, expect

from support.console.running_console import puppet, show

pytestmark = pytest.mark.asyncio(loop_scope="package")

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
MARKUP = "<b>{}</b><img src=/pwned.png onerror=\"window.__pwned='{}'\">"


def bad(place: str) -> str:
    return MARKUP.format(place, place)


HOSTILE: dict[str, Any] = {
    "resources/list": {
        "resources": [
            {"uri": f"x://{bad('uri')}", "name": bad("name"), "description": bad("about"), "mimeType": bad("kind")},
            {"uri": 7, "name": "no address"},
            None,
        ]
    },
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": bad("template"), "name": bad("form")}]},
    "resources/read": {
        "contents": [
            {"uri": "x://y", "mimeType": bad("mime"), "text": bad("text")},
            {"uri": "x://y", "mimeType": "image/png", "blob": PIXEL},
            {"uri": "x://y", "mimeType": "image/svg+xml", "blob": "PHN2Zz4="},
            {"uri": "x://y", "mimeType": "application/zip", "blob": "AAAA"},
        ]
    },
    "prompts/list": {
        "prompts": [
            {
                "name": bad("prompt"),
                "description": bad("purpose"),
                "arguments": [{"name": "__proto__"}, {"name": bad("argument"), "description": bad("hint")}, None],
            }
        ]
    },
    "prompts/get": {
        "messages": [
            {"role": bad("role"), "content": {"type": "text", "text": bad("said")}},
            {"role": "assistant", "content": {"type": "image", "mimeType": "image/png", "data": PIXEL}},
            "odd",
        ]
    },
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return {
        "demo": {"command": sys.executable, "args": ["-m", "emceepee.demo"], "env": path},
        "hostile": puppet(tmp_path_factory.mktemp("hostile"), HOSTILE),
        "bare": puppet(tmp_path_factory.mktemp("bare")),
    }


async def offers(page: Page, server: str, kind: str) -> Locator:
    await show(page, "Servers")
    card = page.locator(f'[data-testid="server-card"][data-name="{server}"]')
    await card.get_by_role("button", name=f"Show {kind}").click()
    return card


async def test_a_resource_is_read_and_a_template_filled_in_on_the_page(page: Page) -> None:
    card = await offers(page, "demo", "resources")
    note = card.locator('[data-testid="resource"][data-name="note://today"]')
    await note.locator("summary").first.click()
    await note.get_by_role("button", name="Read").click()
    await expect(note.get_by_test_id("answer")).to_contain_text("Buy bread.")

    template = card.get_by_test_id("template")
    await template.locator("summary").first.click()
    await template.get_by_role("button", name="Fill in below").click()
    address = card.get_by_label("Address of a resource")
    await expect(address).to_have_value("note://{name}")
    await expect(address).to_be_focused()
    await address.fill("note://nobody-wrote-it")
    await card.get_by_test_id("resource-form").get_by_role("button", name="Read").click()
    await expect(card.get_by_test_id("answer").last).to_contain_text("There is no note://nobody-wrote-it")
    await address.fill("note://today")
    await address.press("Enter")
    await expect(card.get_by_test_id("answer").last).to_contain_text("Buy bread.")


async def test_a_prompt_is_filled_in_and_shown_separately_from_other_kinds_of_entries(page: Page) -> None:
    card = await offers(page, "demo", "prompts")
    prompt = card.locator('[data-testid="prompt"][data-name="plan_dinner"]')
    await prompt.locator("summary").first.click()
    form = prompt.get_by_test_id("prompt-form")
    await form.get_by_role("button", name="Get").click()
    await expect(form.locator(".field-problem:visible")).to_have_count(1)
    await form.get_by_label("Cuisine").fill("peruvian")
    await form.get_by_role("button", name="Get").click()
    await expect(prompt.get_by_test_id("answer")).to_contain_text("Plan a peruvian dinner for 4 guests")
    await expect(prompt.get_by_test_id("answer")).to_contain_text("user")
    await card.get_by_role("button", name="Show tools").click()
    await expect(card.get_by_test_id("tool").first).to_be_visible()
    await expect(prompt).to_be_hidden()


async def test_a_server_without_resources_and_prompts_is_shown_as_such(page: Page) -> None:
    card = await offers(page, "bare", "prompts")
    await expect(card.get_by_text("Method not found").or_(card.get_by_text("0 prompts")).first).to_be_visible()


async def test_resources_and_prompts_of_hostile_servers_stay_text(page: Page) -> None:
    card = await offers(page, "hostile", "resources")
    await expect(card.get_by_role("heading", name="1 resource")).to_be_visible()
    resource = card.get_by_test_id("resource")
    await resource.locator("summary").first.click()
    await resource.get_by_role("button", name="Read").click()
    await expect(resource.get_by_test_id("answer")).to_contain_text("<b>text</b>")
    await expect(resource.get_by_test_id("answer").locator("img")).to_have_count(1)
    await card.get_by_test_id("template").locator("summary").first.click()
    await expect(card.get_by_test_id("template")).to_contain_text("<b>template</b>")
    await card.get_by_role("button", name="Show prompts").click()
    prompt = card.get_by_test_id("prompt")
    await prompt.locator("summary").first.click()
    await expect(prompt).to_contain_text("<b>argument</b>")
    await prompt.get_by_role("button", name="Get").click()
    await expect(prompt.get_by_test_id("answer")).to_contain_text("<b>said</b>")
    assert await page.evaluate("() => window.__pwned") is None
    assert await page.locator("img[src*=pwned], [onerror], svg[onload]").count() == 0
