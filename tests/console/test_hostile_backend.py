"""A backend that writes markup, control characters, and endless text everywhere. All of it stays text."""

import asyncio
import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from support.callers.http_process import HttpCaller
from support.console.running_console import VIEWS, open_tool, puppet, show

pytestmark = pytest.mark.asyncio(loop_scope="package")

# Each place has a name, so that the test can look for it on the page and see that it is text there.
MARKUP = (
    "<b>{place}</b><script>window.__pwned = '{place}'; alert(1)</script>"
    "<img src=/pwned.png onerror=\"window.__pwned='{place}'\"><svg onload=\"window.__pwned='{place}'\">"
    "</script></textarea></title><iframe src=javascript:alert(1)></iframe>{{{{7*7}}}}${{7*7}}"
)


def bad(place: str) -> str:
    return MARKUP.format(place=place)


def shown(place: str) -> str:
    """How it begins where it is shown as text."""
    return f"<b>{place}</b><script>"


def schema(depth: int = 0) -> dict[str, Any]:
    """One with markup in every text, and at `depth` more objects inside each other."""
    inner: dict[str, Any] = {"type": "string"}
    for level in range(depth):
        inner = {"type": "object", "title": f"level {level}", "properties": {"down": inner}}
    return {
        "type": "object",
        "title": bad("schema title"),
        "description": bad("schema description"),
        "properties": {
            "plain": {
                "type": "string",
                "title": bad("field title"),
                "description": bad("field description"),
                "default": bad("field default"),
                "pattern": bad("field pattern"),
                "format": bad("field format"),
            },
            bad("field name"): {"type": "string"},
            "__proto__": {"type": "string", "title": "prototype"},
            "constructor": {"type": "string", "title": "builder"},
            "choice": {"type": "string", "enum": [bad("choice")], "enumNames": [bad("choice name")]},
            "titled": {"type": "string", "oneOf": [{"const": bad("const"), "title": bad("const title")}]},
            "many": {"type": "array", "items": {"anyOf": [{"const": bad("item"), "title": bad("item title")}]}},
            "odd": {"type": bad("type"), "default": {"deep": [bad("odd default")]}},
            "nothing": None,
            "deep": inner,
        },
        "required": ["plain", bad("required"), 7, None],
    }


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "title": bad("tool title"),
        "description": bad("tool description"),
        "inputSchema": schema(),
        "annotations": {"title": bad("annotation title"), "readOnlyHint": bad("annotation hint")},
        **more,
    }


OFFER: dict[str, Any] = {
    "initialize": {
        "serverInfo": {"name": bad("server info"), "title": bad("server title"), "version": bad("server version")},
        "instructions": bad("instructions"),
    },
    "tools/list": {
        "tools": [
            tool("speak"),
            tool(bad("tool name")),
            tool("deep", inputSchema=schema(depth=80)),  # nearly as deep as is read at all
            tool("long", description="long " * 20_000),
            tool("bidi", description="\u202etxt.exe\u2066 \u0000 \ufeff \ud800 end"),
        ]
    },
    "resources/list": {"resources": [{"uri": f"x://{bad('uri')}", "name": bad("resource name")}]},
    "resources/read": {"contents": [{"uri": "x://y", "mimeType": bad("mime"), "text": bad("resource text")}]},
    "prompts/list": {"prompts": [{"name": bad("prompt name"), "description": bad("prompt description")}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": bad("prompt text")}}]},
}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {"hostile": puppet(tmp_path_factory.mktemp("hostile"), OFFER)}


async def harmless(page: Page) -> None:
    """Nothing ran and nothing was made of it; that nothing was fetched, and no dialog opened, the watch sees to."""
    assert await page.evaluate("() => window.__pwned") is None
    made = "img[src*=pwned], svg[onload], iframe, script:not([src]), [onerror], a[href^='javascript:']"
    assert await page.locator(made).count() == 0


async def speak(caller: HttpCaller, name: str = "speak", /, **wish: Any) -> dict[str, Any]:
    return await caller.call("execute_tool", server="hostile", tool=name, args=wish, on_question="wait")


async def test_hostile_requests_results_errors_progress_and_logs_stay_text(page: Page, caller: HttpCaller) -> None:
    told = [
        {"method": "notifications/message", "params": {"level": bad("level"), "data": bad("odd level")}},
        {
            "method": "notifications/message",
            "params": {"level": "error", "logger": bad("logger"), "data": {bad("key"): [bad("log data")]}},
        },
        {
            "method": "notifications/progress",
            "params": {"progressToken": "TOKEN", "progress": 1, "total": 2, "message": bad("progress message")},
        },
        {"method": f"notifications/{bad('method')}", "params": {bad("param"): bad("notification")}},
    ]
    block = {"type": "text", "text": bad("result text")}
    odd = {"type": bad("block type"), "data": bad("block data"), "uri": "javascript:alert(1)"}
    image = {"type": "image", "data": bad("image"), "mimeType": 'image/svg+xml"><script>alert(1)</script>'}
    result = {"content": [block, odd, image], "structuredContent": {bad("result key"): bad("result value")}}
    await speak(caller, bad("tool name"), stderr=bad("stderr line"), send=told, result=result)
    await speak(caller, "fails", error={"code": 1, "message": bad("error message"), "data": bad("error data")})
    await speak(caller, "says no", result={"isError": True, "content": [{"type": "text", "text": bad("tool error")}]})
    await caller.call("read_resource", server="hostile", uri=f"x://{bad('uri')}")
    await caller.call("get_prompt", server="hostile", name=bad("prompt name"))
    for name, place in (
        (shown("tool name"), "result text"),
        ("fails", "error message"),
        ("says no", "tool error"),
        (f"x://{shown('uri')}", "resource text"),
        (shown("prompt name"), "prompt text"),
    ):
        named = page.get_by_text(re.compile(f"^{re.escape(name)}"))
        await page.get_by_test_id("waterfall-row").filter(has=named).click()
        await expect(page.get_by_test_id("request-detail")).to_contain_text(shown(place))
        await harmless(page)
    await show(page, "Logs")
    for place in ("stderr line", "logger", "log data", "odd level"):
        await expect(page.get_by_test_id("log-row").filter(has_text=shown(place)).first).to_be_visible()
    await show(page, "Events")
    await expect(page.get_by_test_id("event-row").filter(has_text=shown("method")).first).to_be_attached()
    await harmless(page)


async def test_hostile_servers_and_tools_stay_text(page: Page) -> None:
    form = await open_tool(page, "hostile", "speak")
    for place in ("field title", "field description", "field name", "choice name", "const title", "item title"):
        await expect(form).to_contain_text(shown(place))
    await form.get_by_role("button", name="Call").click()
    result = page.get_by_test_id("call-result").first
    await expect(result).to_contain_text(shown("field default"))
    await harmless(page)
    tools = page.get_by_test_id("tool")
    await expect(tools).to_have_count(5)
    for index in range(5):
        tool = tools.nth(index)
        if not await tool.get_by_role("button", name="Call").is_visible():  # one is open already
            await tool.locator("summary").first.click()
        await expect(tool.get_by_role("button", name="Call")).to_be_visible()
        await tool.get_by_text("Schema", exact=True).click()
        await expect(tool).to_contain_text(shown("schema title"))
    await expect(tools.filter(has_text=shown("tool description"))).not_to_have_count(0)
    await harmless(page)


async def test_a_question_with_markup_in_every_text_can_still_be_read_and_answered(
    page: Page, caller: HttpCaller
) -> None:
    params = {"message": bad("question"), "requestedSchema": schema(depth=50)}
    asking = asyncio.create_task(speak(caller, ask={"method": "elicitation/create", "params": params}))
    await show(page, "Questions")
    question = page.get_by_test_id("question")
    for place in ("question", "field title", "field description", "field name", "choice name", "const title"):
        await expect(question).to_contain_text(shown(place))
    await harmless(page)
    await question.get_by_role("button", name="Decline").click()
    assert (await asking)["structuredContent"]["value"] == {"action": "decline"}


async def test_a_sampling_request_with_markup_stays_text(page: Page, caller: HttpCaller) -> None:
    params = {
        "systemPrompt": bad("system prompt"),
        "messages": [
            {"role": bad("role"), "content": {"type": "text", "text": bad("sampling text")}},
            {"role": "user", "content": [{"type": "image", "data": bad("pixels"), "mimeType": bad("mime")}]},
        ],
        "modelPreferences": {"hints": [{"name": bad("model hint")}]},
        "maxTokens": 5,
    }
    asking = asyncio.create_task(speak(caller, ask={"method": "sampling/createMessage", "params": params}))
    await show(page, "Questions")
    question = page.get_by_test_id("question")
    for place in ("system prompt", "sampling text"):
        await expect(question).to_contain_text(shown(place))
    await harmless(page)
    await question.get_by_role("button", name="Refuse").click()
    await asking


async def test_a_url_question_with_markup_stays_text(page: Page, caller: HttpCaller) -> None:
    link = f'https://user:pass@example.org/"><script>window.__pwned = 1</script>?{bad("link")}'
    params = {"mode": "url", "message": bad("url message"), "url": link, "elicitationId": bad("elicitation id")}
    asking = asyncio.create_task(speak(caller, ask={"method": "elicitation/create", "params": params}))
    await show(page, "Questions")
    question = page.get_by_test_id("question")
    await expect(question.get_by_test_id("question-host")).to_have_text("example.org")
    await harmless(page)
    await question.get_by_role("button", name="Cancel", exact=True).click()
    await asking


async def test_endless_words_and_unusual_characters_do_not_break_the_page(page: Page, caller: HttpCaller) -> None:
    endless = "endless" * 15_000
    odd = "\u202egnp.exe\u202c \u2066isolated \u0000 null \ufeff \u200b \x1b[31m red \x07 \r\n \u2028 e\u0301\u0302"
    logs = [{"method": "notifications/message", "params": {"level": "info", "data": text}} for text in (endless, odd)]
    for name, text in (("endless", endless), ("odd", odd), (endless[:2000], "x"), (odd, "y")):
        await speak(caller, name, stderr=text[:5000], send=logs, result={"content": [{"type": "text", "text": text}]})
    await expect(page.get_by_test_id("waterfall-row").filter(has_text="endless").first).to_be_visible()
    for view in VIEWS:
        await show(page, view)
        assert await page.evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"), view
        await harmless(page)
