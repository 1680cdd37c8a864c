"""Every view, with something in it: a picture to look at in `tests/output`, what axe finds, and the keyboard alone.

`make screenshots` puts one of the pictures into the docs.
"""

import asyncio
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from support.callers.http_process import HttpCaller
from support.console.chromium import Watch
from support.console.console_scene import a_scene, scene_servers
from support.console.running_console import DESKTOP, PHONE, VIEWS, Console, open_page, open_tool, row, show
from support.matrix import matrix
from support.sessions.replies import backend_part

pytestmark = pytest.mark.asyncio(loop_scope="package")

OUTPUT = Path(__file__).parents[1] / "output"
SIZES = {"desktop": DESKTOP, "phone": PHONE}
LARGEST = 200_000  # bytes of a picture: one of them is in the repository
AXE = Path(__file__).parents[1] / "node" / "node_modules" / "axe-core" / "axe.min.js"
RUN_AXE = """async () => {
  const found = await axe.run(document, { resultTypes: ["violations"] });
  return found.violations
    .filter((it) => ["serious", "critical"].includes(it.impact))
    .flatMap((it) => it.nodes.map((node) => `${it.id}: ${node.html.slice(0, 160)} ${node.failureSummary}`));
}"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return scene_servers(tmp_path_factory.mktemp("scene"))


@pytest_asyncio.fixture(scope="module", loop_scope="package")
async def scene(console: Console) -> AsyncIterator[HttpCaller]:
    async with a_scene(console) as caller:
        yield caller


async def findings(page: Page) -> list[str]:
    """Serious and critical ones. The page's policy lets no script in: it is brought in past it."""
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(AXE.read_text())
    found: list[str] = await page.evaluate(RUN_AXE)
    return found


@pytest.mark.parametrize(
    ("device", "scheme"),
    matrix(itertools.product(SIZES, ["light", "dark"]), representatives=[("desktop", "light"), ("phone", "dark")]),
)
async def test_every_view_has_its_picture_and_axe_finds_nothing_serious_in_it(
    browser: Browser,
    console: Console,
    scene: HttpCaller,
    scheme: Literal["light", "dark"],
    device: str,
) -> None:
    found: dict[str, list[str]] = {}

    async def look_at(page: Page, view: str) -> None:
        path = OUTPUT / f"{view}-{device}-{scheme}.png"
        await page.screenshot(path=path, animations="disabled")
        assert 5_000 < path.stat().st_size < LARGEST
        assert await page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), view
        found[view] = await findings(page)

    async with console.profile(browser, Watch(), viewport=SIZES[device], color_scheme=scheme) as context:
        page = await open_page(context, console.origin)
        await expect(page.get_by_test_id("waterfall-row").first).to_be_visible()
        for view in reversed(VIEWS):  # the waterfall last, when what runs has run for a while
            await show(page, view)
            if view == "Waterfall":
                await page.get_by_test_id("zoom-fit").click()
            await look_at(page, view.lower())
        await page.get_by_test_id("filter-search").fill("read_file")
        await row(page, "read_file").click()
        await expect(page.get_by_test_id("detail-result")).to_contain_text("Buy bread.")
        await page.get_by_test_id("filter-search").fill("")
        await look_at(page, "detail")
        await page.get_by_test_id("request-detail").get_by_role("button", name="Close").click()
        form = await open_tool(page, "files", "read_file")
        await expect(form.get_by_label("Path")).to_be_visible()
        await look_at(page, "tools")
        await show(page, "Servers")
        await page.get_by_test_id("add-server").click()
        await look_at(page, "server-form")
    assert {view: problems for view, problems in found.items() if problems} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious_at_the_login(
    browser: Browser, console: Console, scheme: Literal["light", "dark"]
) -> None:
    context = await browser.new_context(color_scheme=scheme)
    page = await context.new_page()
    await page.goto(f"{console.origin}/console/login")
    assert await findings(page) == []
    await context.close()


FOCUSED = """() => {
  const it = document.activeElement;
  const style = getComputedStyle(it);
  const around = it.closest("[data-testid=question]")?.innerText ?? "";
  const isSeen = style.outlineStyle !== "none" || style.boxShadow !== "none";
  return { words: `${it.tagName} ${it.getAttribute("name") ?? ""} ${it.innerText ?? ""} in ${around}`, isSeen };
}"""


async def tab_to(page: Page, *words: str) -> None:
    """Press Tab until the focus is on something with these words. Wherever it is, it must be seen to be there."""
    passed = []
    for _ in range(150):
        await page.keyboard.press("Tab")
        focus = await page.evaluate(FOCUSED)
        assert focus["isSeen"], f"nobody sees that the focus is on {focus['words'][:80]}"
        if all(word in focus["words"] for word in words):
            return
        passed.append(focus["words"].partition("\n")[0])
    raise AssertionError(f"the focus never came to {words}, but to {list(dict.fromkeys(passed))}")


async def test_a_question_can_be_answered_without_a_mouse(page: Page, console: Console, scene: HttpCaller) -> None:
    caller = await console.endpoint.caller()
    booking = {"server": "demo", "tool": "book_table", "args": {"restaurant": "Keys"}, "on_question": "wait"}
    calling = asyncio.create_task(caller.call("execute_tool", **booking))
    await page.keyboard.press("Tab")
    assert "Skip to content" in (await page.evaluate(FOCUSED))["words"], "it is the first"
    await page.keyboard.press("Enter")
    assert await page.evaluate("() => document.activeElement.id") == "main"
    await page.reload()
    await tab_to(page, "A ", "Questions")
    await page.keyboard.press("Enter")
    await expect(page.get_by_test_id("question").filter(has_text="A table at Keys")).to_be_visible()
    await tab_to(page, "INPUT guests", "A table at Keys")
    await page.keyboard.type("5")
    await tab_to(page, "SELECT time")
    await page.keyboard.press("2")
    await tab_to(page, "INPUT window")
    await page.keyboard.press("Space")
    await tab_to(page, "BUTTON", "Accept")
    await page.keyboard.press("Enter")
    answer = backend_part(await calling)["structuredContent"]
    assert answer == {"booked": True, "restaurant": "Keys", "guests": 5, "time": "21:00", "window": True}
    await caller.end()


async def test_the_waterfall_can_be_read_without_a_mouse(page: Page, scene: HttpCaller) -> None:
    rows = page.get_by_test_id("waterfall-row")
    await expect(rows.first).to_be_visible()
    await tab_to(page, "DIV", "began")
    await page.keyboard.press("End")
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    detail = page.get_by_test_id("request-detail")
    await expect(detail.get_by_role("heading", level=2)).to_have_text("initialize")
    await page.keyboard.press("Escape")
    await expect(detail).to_be_hidden()
    assert "initialize" in (await page.evaluate(FOCUSED))["words"], "the focus is where it was"
