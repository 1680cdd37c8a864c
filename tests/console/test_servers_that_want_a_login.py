"""A server that requires a login, on the page of servers: the button, its target, and the wait."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from support.callers.http_process import HttpCaller
from support.console.running_console import show
from support.system.authorization_server import AuthorizationServer, an_authorization_server

pytestmark = pytest.mark.asyncio(loop_scope="package")


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def authorization_server() -> AsyncIterator[AuthorizationServer]:
    async with an_authorization_server() as running:
        yield running


@pytest.fixture(scope="module")
def servers(authorization_server: AuthorizationServer) -> dict[str, Any]:
    return {"tracker": {"url": authorization_server.resource}}


def card(page: Page) -> Locator:
    return page.locator('[data-testid="server-card"][data-name="tracker"]')


async def test_the_login_button_opens_the_login_and_disappears_when_it_is_done(
    page: Page, caller: HttpCaller, authorization_server: AuthorizationServer
) -> None:
    host = authorization_server.url.removeprefix("http://")
    await caller.call("execute_tool", server="tracker", tool="echo", args={}, timeout_ms=0)
    await show(page, "Servers")
    await expect(card(page)).to_have_attribute("data-status", "authorizing")
    await expect(card(page).get_by_text("Waits for a login").first).to_be_visible()
    links = card(page).get_by_role("link", name=f"Log in at {host}")  # one for each session that waits
    button = links.first
    await expect(button).to_have_attribute("target", "_blank")
    await expect(button).to_have_attribute("rel", "noopener noreferrer")
    (question,) = (await caller.value("get_elicitations"))["requests"]
    await expect(button).to_have_attribute("href", question["url"])
    await show(page, "Overview")
    link = page.get_by_test_id("waiting").get_by_role("link", name=f"Log in at {host}").first
    await expect(link).to_have_attribute("href", question["url"])
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await show(page, "Servers")

    async with page.context.expect_page() as opened:
        await button.click()
    await expect((await opened.value).get_by_role("heading", name="Logged in", exact=True)).to_be_visible()
    await expect(card(page)).to_have_attribute("data-status", "connected")
    await expect(links).to_have_count(0)
    assert authorization_server.asked == 1

    authorization_server.valid.clear()
    authorization_server.status = 503
    await caller.call("execute_tool", server="tracker", tool="echo", args={})
    trouble = f"the login cannot be renewed: {authorization_server.url} is not available (HTTP 503)"
    await expect(card(page).get_by_text(trouble)).to_be_visible()
    await expect(card(page)).to_have_attribute("data-status", "connected")
    authorization_server.status = 200
