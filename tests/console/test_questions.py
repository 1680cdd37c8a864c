"""Backends' questions, answered by a person on the page. The backend receives exactly that answer, and only once."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect

from support.callers.http_process import HttpCaller
from support.console.chromium import Watch
from support.console.running_console import puppet, show

pytestmark = pytest.mark.asyncio(loop_scope="package")

NAME = {"name": {"type": "string", "title": "Your name"}}
EVERY_KIND: dict[str, Any] = {
    "word": {"type": "string", "title": "A word", "description": "Any word will do"},
    "code": {"type": "string", "title": "A code", "minLength": 3, "maxLength": 5},
    "mail": {"type": "string", "title": "Your mail", "format": "email"},
    "site": {"type": "string", "title": "Your site", "format": "uri"},
    "day": {"type": "string", "title": "The day", "format": "date"},
    "moment": {"type": "string", "title": "The moment", "format": "date-time"},
    "color": {"type": "string", "title": "A color", "enum": ["red", "green", "blue"]},
    "size": {"type": "string", "title": "A size", "enum": ["s", "l"], "enumNames": ["Small", "Large"]},
    "plan": {
        "type": "string",
        "title": "A plan",
        "oneOf": [{"const": "a", "title": "Plan A"}, {"const": "b", "title": "Plan B"}],
    },
    "weight": {"type": "number", "title": "The weight", "minimum": 0.5, "maximum": 9.5},
    "guests": {"type": "integer", "title": "How many guests", "minimum": 1, "maximum": 12},
    "window": {"type": "boolean", "title": "By the window", "default": True},
    "extras": {"type": "array", "title": "Extras", "items": {"type": "string", "enum": ["tea", "cake", "jam"]}},
    "days": {
        "type": "array",
        "title": "Days",
        "items": {"anyOf": [{"const": "mo", "title": "Monday"}, {"const": "tu", "title": "Tuesday"}]},
    },
    "untitled": {"type": "string"},
}
DEFAULTS: dict[str, Any] = {
    "word": "bread",
    "code": "abcd",
    "mail": "ann@example.org",
    "site": "https://example.org/ann",
    "day": "2026-02-28",
    "moment": "2026-02-28T12:30:00Z",
    "color": "green",
    "size": "l",
    "plan": "b",
    "weight": 2.25,
    "guests": 4,
    "window": False,
    "extras": ["tea", "jam"],
    "days": ["tu"],
    "untitled": "as it was",
}
FILLED: dict[str, Any] = {
    "word": "  Grüße, 你好 🎉 ",
    "code": "xyz",
    "mail": "bob@example.org",
    "site": "https://example.org/?q=1&r=2",
    "day": "2027-12-31",
    "moment": "2027-12-31T23:59:00-05:00",
    "color": "blue",
    "size": "s",
    "plan": "a",
    "weight": 0.75,
    "guests": 12,
    "window": False,
    "extras": ["cake", "jam"],
    "days": ["mo", "tu"],
    "untitled": "filled",
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"curious": puppet(tmp_path_factory.mktemp("curious"))}


@pytest.fixture(scope="module")
def profile_options() -> dict[str, Any]:
    return {"timezone_id": "America/New_York"}


@pytest.fixture
def page(same_tab: Page, context: BrowserContext) -> Page:
    return same_tab


def form(properties: dict[str, Any], *required: str, message: str = "Fill this in.") -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def completion(text: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": 99}}


class Asking:
    """A call whose backend waits for an answer; `heard` is the answer that it received."""

    def __init__(self, call: "asyncio.Task[dict[str, Any]]") -> None:
        self._call = call

    async def heard(self) -> Any:
        return (await self._call)["structuredContent"]["value"]


@asynccontextmanager
async def asking(caller: HttpCaller, question: dict[str, Any]) -> AsyncIterator[Asking]:
    arguments = {"server": "curious", "tool": "speak", "args": {"ask": question}, "on_question": "wait"}
    call = asyncio.create_task(caller.call("execute_tool", **arguments))
    try:
        yield Asking(call)
    finally:
        call.cancel()
        await asyncio.wait([call])


async def the_question(page: Page) -> Locator:
    await show(page, "Questions")
    question = page.get_by_test_id("question")
    await expect(question).to_have_count(1)
    return question


async def test_a_form_with_every_kind_of_field_reaches_the_backend_as_it_was_filled_in(
    page: Page, caller: HttpCaller
) -> None:
    async with asking(caller, form(EVERY_KIND, *EVERY_KIND)) as call:
        question = await the_question(page)
        await fill_in(question, FILLED)
        await question.get_by_role("button", name="Accept").click()
        assert await call.heard() == {"action": "accept", "content": FILLED}


async def test_a_form_accepted_without_changes_sends_its_defaults(page: Page, caller: HttpCaller) -> None:
    properties = {name: rule | {"default": DEFAULTS[name]} for name, rule in EVERY_KIND.items()}
    async with asking(caller, form(properties, *EVERY_KIND)) as call:
        question = await the_question(page)
        await question.get_by_role("button", name="Accept").click()
        assert await call.heard() == {"action": "accept", "content": DEFAULTS}


async def test_optional_fields_left_empty_are_omitted(page: Page, caller: HttpCaller) -> None:
    properties = {name: rule for name, rule in EVERY_KIND.items() if name != "window"}
    async with asking(caller, form(properties, "word")) as call:
        question = await the_question(page)
        await question.get_by_label("A word").fill("only this")
        await question.get_by_role("button", name="Accept").click()
        assert await call.heard() == {"action": "accept", "content": {"word": "only this"}}


async def test_a_boolean_without_a_default_can_be_answered_either_way(page: Page, caller: HttpCaller) -> None:
    for wanted in (True, False):
        properties = {"sure": {"type": "boolean", "title": "Are you sure"}}
        async with asking(caller, form(properties, "sure")) as call:
            question = await the_question(page)
            await fill_in(question, {"sure": wanted})
            await question.get_by_role("button", name="Accept").click()
            assert await call.heard() == {"action": "accept", "content": {"sure": wanted}}


REFUSED_INPUT = [
    ("code", {}, "ab", "at least 3"),
    ("code", {}, "abcdef", "at most 5"),
    ("code", {}, None, "Fill this in"),
    ("mail", {}, "nobody", "email"),
    ("site", {}, "not an address", "address"),
    ("weight", {}, 9.75, "9.5"),
    ("guests", {}, 0, "1"),
    ("guests", {}, 2.5, "whole"),
    ("color", {}, None, "Fill this in"),
    ("extras", {"minItems": 2}, ["tea"], "at least 2"),
    ("extras", {"maxItems": 1}, ["tea", "jam"], "at most 1"),
    ("word", {"pattern": "^[A-Z]{2}-[0-9]+$"}, "nothing", "must match"),  # which only the server judges
]


@pytest.mark.parametrize(("name", "rule", "wrong", "words"), REFUSED_INPUT)
async def test_an_invalid_answer_is_rejected_with_the_reason_and_the_question_stays(
    page: Page, caller: HttpCaller, watch: Watch, name: str, rule: dict[str, Any], wrong: Any, words: str
) -> None:
    watch.allow(r"400 POST /console/answer|status of 400")
    async with asking(caller, form({name: EVERY_KIND[name] | rule}, name)) as call:
        question = await the_question(page)
        await fill_in(question, {} if wrong is None else {name: wrong})
        await question.get_by_role("button", name="Accept").click()
        control = question.locator(f'[name="{name}"]').first
        await expect(control).to_have_attribute("aria-invalid", "true")
        await expect(control).to_have_accessible_description(re.compile(words))
        await question.get_by_role("button", name="Decline").click()
        assert await call.heard() == {"action": "decline"}


async def test_a_rejected_answer_can_be_corrected(page: Page, caller: HttpCaller) -> None:
    async with asking(caller, form({"code": EVERY_KIND["code"], "word": EVERY_KIND["word"]}, "code")) as call:
        question = await the_question(page)
        await fill_in(question, {"code": "ab", "word": "kept"})
        await question.get_by_role("button", name="Accept").click()
        await expect(question.get_by_label("A code")).to_have_attribute("aria-invalid", "true")
        await fill_in(question, {"code": "abc"})
        await question.get_by_role("button", name="Accept").click()
        assert await call.heard() == {"action": "accept", "content": {"code": "abc", "word": "kept"}}


@pytest.mark.parametrize(("button", "action"), [("Decline", "decline"), ("Cancel", "cancel")])
async def test_a_question_can_be_declined_on_the_page(page: Page, caller: HttpCaller, button: str, action: str) -> None:
    async with asking(caller, form(NAME, "name")) as call:
        question = await the_question(page)
        await question.get_by_role("button", name=button, exact=True).click()
        assert await call.heard() == {"action": action}


async def test_a_url_question_shows_its_host_and_opens_only_on_request(page: Page, caller: HttpCaller) -> None:
    link = "https://accounts.example.com.evil.example/login?next=https://accounts.example.com"
    params = {"mode": "url", "message": "Log in.", "url": link, "elicitationId": "login-1"}
    async with asking(caller, {"method": "elicitation/create", "params": params}) as call:
        question = await the_question(page)
        await expect(question.get_by_test_id("question-host")).to_have_text("accounts.example.com.evil.example")
        opener = question.get_by_role("link", name="Open link")
        await expect(opener).to_have_attribute("href", link)
        await expect(opener).to_have_attribute("target", "_blank")
        await expect(opener).to_have_attribute("rel", re.compile("noopener.*noreferrer|noreferrer.*noopener"))
        await question.get_by_role("button", name="Accept").click()
        assert await call.heard() == {"action": "accept"}


@pytest.mark.parametrize("link", ["javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "nowhere"])
async def test_a_link_that_is_not_a_web_address_cannot_be_opened(page: Page, caller: HttpCaller, link: str) -> None:
    params = {"mode": "url", "message": "Log in.", "url": link, "elicitationId": "login-2"}
    async with asking(caller, {"method": "elicitation/create", "params": params}) as call:
        question = await the_question(page)
        await expect(question.get_by_text(link)).to_be_visible()
        await expect(question.locator("a[href]")).to_have_count(0)
        await question.get_by_role("button", name="Decline").click()
        assert await call.heard() == {"action": "decline"}


async def test_a_sampling_request_can_be_answered_with_text(page: Page, caller: HttpCaller) -> None:
    async with asking(caller, completion("What rhymes with proxy?")) as call:
        question = await the_question(page)
        await expect(question).to_have_attribute("data-kind", "sampling")
        await expect(question.get_by_text("What rhymes with proxy?")).to_be_visible()
        await question.get_by_label("Answer").fill("Foxy.\nAnd doxy.")
        await question.get_by_role("button", name="Send answer").click()
        heard = await call.heard()
    assert heard["content"] == {"type": "text", "text": "Foxy.\nAnd doxy."}
    assert heard["role"] == "assistant"


async def test_a_sampling_request_can_be_declined(page: Page, caller: HttpCaller) -> None:
    async with asking(caller, completion("Say something.")) as call:
        question = await the_question(page)
        await question.get_by_role("button", name="Refuse").click()
        assert (await call.heard())["code"] == -1


async def test_an_answered_question_does_not_return_while_the_feed_still_lists_it(
    page: Page, caller: HttpCaller
) -> None:
    """On a busy machine the reply arrives before the feed update. Here the feed never updates."""
    async with asking(caller, form(NAME)):
        question = await the_question(page)
        await page.route("**/console/answer", lambda route: route.fulfill(json={}))
        await question.get_by_role("button", name="Decline").click()
        await expect(question).to_have_count(0)
        await page.unroute("**/console/answer")
        async with asking(caller, completion("And another?")) as call:
            await expect(page).to_have_title(re.compile(r"^\(2\) "))
            await expect(question).to_have_count(1)
            await question.get_by_role("button", name="Refuse").click()
            await call.heard()


async def test_when_the_model_answers_first_the_page_reports_it(page: Page, caller: HttpCaller) -> None:
    async with asking(caller, form(NAME, "name")) as call:
        question = await the_question(page)
        await question.get_by_label("Your name").fill("half typ")
        request_id = await question.get_attribute("data-id")
        answer = {"action": "accept", "content": {"name": "Model"}}
        await caller.value("respond_to_elicitation", request_id=request_id, **answer)
        await expect(question.get_by_test_id("question-closed")).to_be_visible()
        await expect(question.get_by_label("Your name")).to_have_value("half typ")  # which may be wanted elsewhere
        await question.get_by_role("button", name="Dismiss").click()
        await expect(question).to_have_count(0)
        assert await call.heard() == answer


async def test_when_the_person_answers_first_the_caller_learns_about_the_answer(page: Page, caller: HttpCaller) -> None:
    question = {"ask": form(NAME, "name")}
    await caller.call("execute_tool", server="curious", tool="speak", args=question, timeout_ms=0)
    card = await the_question(page)
    request_id = await card.get_attribute("data-id")
    await hear(caller, "elicitation_request")
    await card.get_by_label("Your name").fill("Ann")
    await card.get_by_role("button", name="Accept").click()
    heard = await hear(caller, "elicitation_expired", "task_completed")
    assert heard["elicitation_expired"]["requestId"] == request_id
    assert heard["elicitation_expired"]["reason"] == "answered"


async def hear(caller: HttpCaller, *types: str) -> dict[str, Any]:
    """Return the events of await_activity until each of these types has come: the last event of each type."""
    heard: dict[str, Any] = {}
    while not set(types) <= heard.keys():
        told = await caller.value("await_activity", timeout_ms=20_000)
        assert told["events"], f"heard only {heard}"
        heard |= {event["type"]: event["data"] for group in told["events"] for event in group["events"]}
    return heard


async def test_the_page_title_counts_the_open_questions(page: Page, caller: HttpCaller) -> None:
    async with asking(caller, form(NAME)):
        await expect(page).to_have_title(re.compile(r"^\(1\) "))
        async with asking(caller, completion("And another?")) as call:
            await expect(page).to_have_title(re.compile(r"^\(2\) "))
            await show(page, "Questions")
            await page.get_by_role("button", name="Refuse").click()
            await call.heard()
        await expect(page).to_have_title(re.compile(r"^\(1\) "))
        await page.get_by_role("button", name="Decline").click()
        await expect(page).to_have_title(re.compile(r"^[^(]"))


async def fill_in(question: Locator, values: dict[str, Any]) -> None:
    """Each field by its name, as its kind of control wants it."""
    for name, value in values.items():
        control = question.locator(f'[name="{name}"]')
        first = control.first
        kind = await first.evaluate("it => it.tagName === 'INPUT' ? it.type : it.tagName.toLowerCase()")
        match kind:
            case "select":
                await first.select_option(str(value).lower() if isinstance(value, bool) else value)
            case "checkbox" if isinstance(value, bool):
                await first.set_checked(value)
            case "checkbox":
                for box in await control.all():
                    await box.set_checked(await box.get_attribute("value") in value)
            case "radio":
                await question.locator(f'[name="{name}"][value="{value}"]').check()
            case "datetime-local":
                await first.fill(value[:19])
            case _:
                await first.fill(str(value))


async def test_a_problem_is_shown_at_its_field_for_any_field_name(page: Page, caller: HttpCaller, watch: Watch) -> None:
    watch.allow(r"400 POST /console/answer|status of 400")
    names = ("size", "size: of the table")
    rule = {"type": "string", "pattern": "^[0-9]+$"}
    async with asking(caller, form(dict.fromkeys(names, rule))) as call:
        question = await the_question(page)
        await fill_in(question, {"size": "4", "size: of the table": "large"})
        await question.get_by_role("button", name="Accept").click()
        control = question.locator('[name="size: of the table"]')
        await expect(control).to_have_accessible_description(re.compile("must match"))
        await expect(question.locator('[name="size"]')).not_to_have_attribute("aria-invalid", "true")
        await question.get_by_role("button", name="Decline").click()
        assert await call.heard() == {"action": "decline"}
