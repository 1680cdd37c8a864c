"""Access to the console: only with a login, and only to data of the same principal."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from support.callers.http_process import http_process
from support.console.chromium import Watch
from support.console.running_console import Console, live, open_page

pytestmark = pytest.mark.asyncio(loop_scope="package")

VIEWS = (
    "",
    "#waterfall",
    "#overview",
    "#questions",
    "#servers",
    "#sessions",
    "#tasks",
    "#timers",
    "#events",
    "#logs",
    "waterfall",
)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest_asyncio.fixture(loop_scope="package")
async def stranger(browser: Browser, watch: Watch) -> AsyncIterator[Page]:
    """The page of someone who has not logged in."""
    context = await browser.new_context()
    await watch.over(context)
    yield await context.new_page()
    watch.end(context)
    await context.close()
    assert watch.found() == []


async def test_every_view_requires_a_login(stranger: Page, console: Console) -> None:
    for view in VIEWS:
        await stranger.goto(f"{console.origin}/{view}")
        assert stranger.url.partition("#")[0] == f"{console.origin}/console/login"


async def test_a_console_link_works_once(stranger: Page, console: Console, browser: Browser, watch: Watch) -> None:
    watch.allow(r"403 GET /console/login|status of 403")  # the second time
    link = await console.login_link()
    await stranger.goto(link)
    await live(stranger)
    assert "code" not in stranger.url
    other = await browser.new_context()
    await watch.over(other)
    again = await other.new_page()
    await again.goto(link)
    assert again.url.startswith(f"{console.origin}/console/login")
    await expect(again.get_by_role("alert")).to_be_visible()
    watch.end(other)
    await other.close()


async def test_logging_out_ends_the_login_in_every_tab(stranger: Page, console: Console, watch: Watch) -> None:
    watch.allow(r"401 GET /console/|status of 401")
    await stranger.goto(await console.login_link())
    await live(stranger)
    other = await open_page(stranger.context, console.origin)
    await stranger.get_by_role("button", name="Log out").click()
    await stranger.wait_for_url("**/console/login*")
    await other.wait_for_url("**/console/login*")  # by itself: its feed was cut


async def test_a_token_logs_its_principal_in_and_shows_only_the_data_of_that_principal(
    stranger: Page, watch: Watch
) -> None:
    watch.allow(r"403 POST /console/login|status of 403")  # the wrong token
    async with http_process(
        "--token", "ann=first-secret", "--token", "bob=second-secret", "--log-level", "warn"
    ) as endpoint:
        ann = await endpoint.caller(client="anns-tool", authorization="Bearer first-secret")
        bob = await endpoint.caller(client="bobs-tool", authorization="Bearer second-secret")
        await stranger.goto(endpoint.origin)
        await stranger.get_by_label("token").fill("wrong")
        await stranger.get_by_role("button", name="Log in").click()
        await expect(stranger.get_by_role("alert")).to_be_visible()
        await stranger.get_by_label("token").fill("second-secret")
        await stranger.keyboard.press("Enter")
        await live(stranger)
        await stranger.goto(f"{endpoint.origin}/#sessions")
        await expect(stranger.get_by_test_id("session-row").filter(has_text="bobs-tool")).to_have_count(1)
        await expect(stranger.get_by_text("anns-tool")).to_have_count(0)
        await ann.end()
        await bob.end()
        await stranger.goto("about:blank")  # else it asks again and again for what has ended
