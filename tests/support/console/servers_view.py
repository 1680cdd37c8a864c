"""Actions of a person in the page's view of servers."""

from playwright.async_api import Locator, Page, expect

from support.console.running_console import show


def card(page: Page, name: str) -> Locator:
    return page.get_by_test_id("server-card").and_(page.locator(f'[data-name="{name}"]'))


def connection_of(page: Page, name: str, session: str) -> Locator:
    """How a server is in the session whose name on the page begins like this."""
    return card(page, name).get_by_role("listitem").filter(has_text=session)


async def open_form(page: Page) -> Locator:
    await show(page, "Servers")
    await page.get_by_test_id("add-server").click()
    return page.get_by_test_id("server-form")


async def add(page: Page, name: str, url: str) -> None:
    form = await open_form(page)
    await form.get_by_label("Name", exact=True).fill(name)
    await form.get_by_label("Address").fill(url)
    await form.get_by_role("button", name="Add server").click()
    await expect(form).to_have_count(0)


async def edit(page: Page, name: str, **fields: str) -> None:
    """Fields by the first words of their labels."""
    await card(page, name).get_by_role("button", name="Edit", exact=True).click()
    form = card(page, name).get_by_test_id("server-form")
    for label, text in fields.items():
        await form.get_by_label(label).fill(text)
    await form.get_by_role("button", name="Save").click()
    await expect(form).to_have_count(0)


async def press(page: Page, name: str, button: str) -> None:
    await card(page, name).get_by_role("button", name=button).click()


async def remove(page: Page, name: str) -> None:
    await press(page, name, "Remove")
    await page.get_by_role("dialog").get_by_role("button", name="Remove server").click()
