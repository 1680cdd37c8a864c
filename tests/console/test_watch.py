"""The monitor of the pages records everything that a page must never do."""

from functools import partial

import pytest
from playwright.async_api import Page

from support.console.chromium import Watch
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="package")

MISDEEDS = [
    ("setTimeout(() => { throw new Error('oh no'); }, 0)", "error: oh no"),
    ("console.error('wrong')", "console: wrong"),
    ("setTimeout(() => alert('hello'), 0)", "dialog: hello"),
    ("fetch('/console/nothing').catch(() => {})", "status: 404 GET /console/nothing"),
    ("new Image().src = 'https://a.example/'", "console: policy: img-src"),
    ("try { document.body.innerHTML = '<b>'; } catch {}", "console: policy: require-trusted-types-for"),
    ("location.href = 'https://a.example/'", "elsewhere: GET https://a.example/"),
]


async def test_the_page_monitor_records_violations(page: Page, watch: Watch) -> None:
    for misdeed, noted in MISDEEDS:
        await page.evaluate(f"() => {{ {misdeed}; }}")
        await eventually(partial(has, watch, noted), what=f"{noted} is noted")
    watch.allow("")  # all of it was meant


def has(watch: Watch, noted: str) -> bool:
    return any(line.startswith(noted) for line in watch.problems)
