"""The bundled demo backend, driven by the official client in both protocol eras."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.context import ClientRequestContext
from mcp.shared.exceptions import MCPError

BOUND = 60.0  # seconds a whole conversation may take on a busy machine
NOTE = "note://today"
ERAS = ["legacy", "2026-07-28"]
Demo = Callable[..., AbstractAsyncContextManager[Client]]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def demo(era: str) -> Demo:
    @asynccontextmanager
    async def connected(**callbacks: Any) -> AsyncIterator[Client]:
        async with asyncio.timeout(BOUND), Client(demo_process(), mode=era, **callbacks) as client:
            yield client

    return connected


def demo_process() -> StdioServerParameters:
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return StdioServerParameters(command=sys.executable, args=["-m", "emceepee.demo"], env=path)


def text_of(result: types.CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


async def test_the_demo_backend_lists_its_capabilities(demo: Demo) -> None:
    async with demo() as client:
        tools = await client.list_tools()
        assert [tool.name for tool in tools.tools] == ["add", "dig", "book_table", "haiku", "touch_note", "mumble"]
        assert all(tool.description for tool in tools.tools)
        assert [item.uri for item in (await client.list_resources()).resources] == [NOTE]
        templates = await client.list_resource_templates()
        assert [item.uri_template for item in templates.resource_templates] == ["note://{name}"]
        assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["plan_dinner"]


async def test_add_returns_its_result_as_text_and_as_data(demo: Demo) -> None:
    async with demo() as client:
        result = await client.call_tool("add", {"a": 2, "b": 40})
    assert text_of(result) == "2 + 40 = 42"
    assert result.structured_content == {"sum": 42.0}


async def test_invalid_arguments_of_the_demo_backend_are_a_tool_error(demo: Demo) -> None:
    async with demo() as client:
        result = await client.call_tool("add", {"a": "two"})
    assert result.is_error
    assert text_of(result) == "Expected `float`, got `str` - at `$.a`"


async def test_an_unknown_tool_prompt_or_note_of_the_demo_backend_is_a_protocol_error(demo: Demo) -> None:
    async with demo() as client:
        with pytest.raises(MCPError, match="Unknown tool: subtract"):
            await client.call_tool("subtract", {})
        with pytest.raises(MCPError, match="plan_dinner"):
            await client.get_prompt("plan_lunch", {"cuisine": "thai"})
        with pytest.raises(MCPError, match="note://yesterday"):
            await client.read_resource("note://yesterday")


async def test_dig_reports_progress_for_every_step(demo: Demo) -> None:
    steps: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append((progress, total, message))

    async with demo() as client:
        result = await client.call_tool("dig", {"seconds": 0.01, "steps": 3}, progress_callback=note)
    assert text_of(result) == "Dug through 3 layers in 0.01 s and found a teapot."
    assert steps == [(1, 3, "layer 1 of 3"), (2, 3, "layer 2 of 3"), (3, 3, "layer 3 of 3")]


async def test_book_table_books_the_choices_of_the_user(demo: Demo) -> None:
    asked: list[types.ElicitRequestParams] = []

    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params)
        return types.ElicitResult(action="accept", content={"guests": 4, "time": "19:30", "window": True})

    async with demo(elicitation_callback=answer) as client:
        result = await client.call_tool("book_table", {"restaurant": "Da Mario"})
    assert text_of(result) == "Booked at Da Mario: 4 guests at 19:30 by the window."
    assert result.structured_content == {
        "booked": True,
        "restaurant": "Da Mario",
        "guests": 4,
        "time": "19:30",
        "window": True,
    }
    (question,) = asked
    assert isinstance(question, types.ElicitRequestFormParams)
    assert question.message == "A table at Da Mario: how many guests, and when?"
    assert question.requested_schema["required"] == ["guests", "time"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_book_table_books_nothing_if_the_user_declines(demo: Demo, action: Any) -> None:
    async def answer(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        return types.ElicitResult(action=action)

    async with demo(elicitation_callback=answer) as client:
        result = await client.call_tool("book_table", {})
    assert result.structured_content == {"booked": False}


@pytest.mark.parametrize(("tool", "missing"), [("book_table", "elicitation"), ("haiku", "sampling")])
async def test_book_table_returns_an_error_to_a_client_without_elicitation_support(
    demo: Demo, tool: str, missing: str
) -> None:
    async with demo() as client:
        result = await client.call_tool(tool, {})
    assert result.is_error
    assert f"did not declare the {missing} capability" in text_of(result)


async def test_haiku_uses_the_model_of_the_client(demo: Demo) -> None:
    async def write(
        context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        (message,) = params.messages
        assert isinstance(message.content, types.TextContent)
        words = types.TextContent(type="text", text=f"({message.content.text})")
        return types.CreateMessageResult(role="assistant", content=words, model="test-model")

    async with demo(sampling_callback=write) as client:
        result = await client.call_tool("haiku", {"topic": "pipes"})
    assert text_of(result) == "(Write a haiku about pipes.)\n— test-model"


async def test_a_changed_note_can_be_read_and_raises_a_notification(demo: Demo, era: str) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: Any) -> None:
        method = getattr(message, "method", "")
        if method.startswith("notifications/resources"):
            heard.put_nowait(method)

    async with demo(message_handler=hear) as client, following(client, era):
        await client.call_tool("touch_note", {"text": "Buy tea."})
        said = {await heard.get(), await heard.get()}
        read = await client.read_resource(NOTE)
    assert said == {"notifications/resources/updated", "notifications/resources/list_changed"}
    (contents,) = read.contents
    assert isinstance(contents, types.TextResourceContents)
    assert contents.text == "Buy tea."


@asynccontextmanager
async def following(client: Client, era: str) -> AsyncIterator[None]:
    """Subscribe in the manner of the era."""
    if era == "legacy":
        await client.subscribe_resource(NOTE)
        yield
        await client.unsubscribe_resource(NOTE)
    else:
        async with client.listen(resources_list_changed=True, resource_subscriptions=[NOTE]):
            yield


async def test_a_changed_note_without_subscribers_changes_only_the_list() -> None:
    heard: list[str] = []
    changed = asyncio.Event()

    async def hear(message: Any) -> None:
        heard.append(getattr(message, "method", ""))
        changed.set()

    async with asyncio.timeout(BOUND), Client(demo_process(), mode="legacy", message_handler=hear) as client:
        await client.call_tool("touch_note", {"name": "tomorrow", "text": "Sleep."})
        await changed.wait()
        uris = [item.uri for item in (await client.list_resources()).resources]
    assert uris == [NOTE, "note://tomorrow"]
    assert heard == ["notifications/resources/list_changed"]


async def test_mumble_logs_from_the_requested_level(demo: Demo, era: str) -> None:
    lines: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()

    async def hear(params: types.LoggingMessageNotificationParams) -> None:
        lines.put_nowait((params.level, params.data))

    async with demo(logging_callback=hear, log_level="info") as client:
        if era == "legacy":
            await client.set_logging_level("info")
        await client.call_tool("mumble", {"about": "rain"})
        said = [await lines.get(), await lines.get()]
    assert sorted(said) == [("info", "still thinking about rain"), ("warning", "thought too long about rain")]
    assert lines.empty()


async def test_the_demo_prompt_inserts_its_arguments(demo: Demo) -> None:
    async with demo() as client:
        prompt = await client.get_prompt("plan_dinner", {"cuisine": "thai", "guests": "6"})
    (message,) = prompt.messages
    assert isinstance(message.content, types.TextContent)
    assert message.content.text == "Plan a thai dinner for 6 guests: three courses, one sentence each."


@pytest.mark.parametrize(
    ("ref", "argument", "typed", "values"),
    [
        (types.PromptReference(type="ref/prompt", name="plan_dinner"), "cuisine", "I", ["italian", "indian"]),
        (types.PromptReference(type="ref/prompt", name="plan_dinner"), "guests", "", []),
        (types.ResourceTemplateReference(type="ref/resource", uri="note://{name}"), "name", "to", ["today"]),
    ],
)
async def test_the_demo_backend_completes_arguments(
    demo: Demo, ref: Any, argument: str, typed: str, values: list[str]
) -> None:
    async with demo() as client:
        completed = await client.complete(ref, {"name": argument, "value": typed})
    assert completed.completion.values == values
