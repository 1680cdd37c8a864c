"""Clients and agent libraries that nobody here wrote, all with the same conversation: a call, a task, a question.

A model may be shown a reply's structured content only, its first block only, or all blocks: each must be enough.
"""

import asyncio
import itertools
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from emceepee.tools.catalogue import TOOLS
from support.callers.attached_callers import home
from support.callers.foreign_clients import (
    AGENTS,
    BLOCKS,
    CLIENTS,
    LANGCHAIN,
    PYTHON_SDK_2,
    STRUCTURED,
    TYPESCRIPT_SDK_2,
    ForeignClient,
    Program,
    a_foreign_client,
    emceepee_on_stdio,
)
from support.callers.http_process import http_process
from support.matrix import matrix

pytestmark = pytest.mark.asyncio(loop_scope="module")
SDKS = {"mcp-2": PYTHON_SDK_2, "typescript-2": TYPESCRIPT_SDK_2}
QUICK_CLIENTS = ("mcp-1", "typescript-2")  # one of each language and era
QUICK_AGENTS = ("openai-agents",)  # it shows its model the fewest parts of a reply

ULID = "([0-9A-HJKMNP-TV-Z]{26})"
TASK_ID = re.compile(rf"\btask(?:_?id)?\W+{ULID}", re.IGNORECASE)
REQUEST_ID = re.compile(rf"\brequest_?id\W+{ULID}", re.IGNORECASE)
DEMO = {
    "name": "demo",
    "command": sys.executable,
    "args": ["-m", "emceepee.demo"],
    "env": {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {},
}
ADD = {"server": "demo", "tool": "add", "args": {"a": 2, "b": 40}}
DIG = {"server": "demo", "tool": "dig", "args": {"seconds": 0.2, "steps": 4}}
PARTS = {BLOCKS: "2 + 40 = 42", STRUCTURED: "sum"}
DUG = "Dug through 4 layers in 0.2 s and found a teapot."
ANSWER = {"guests": 4, "time": "19:30", "window": True}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url() -> AsyncIterator[str]:
    """The plain address of one emceepee, where all libraries tell their story."""
    async with http_process("--log-level", "warn") as endpoint:
        yield endpoint.url


@pytest_asyncio.fixture(loop_scope="module")
async def own_url() -> AsyncIterator[str]:
    """Of one that no other test uses, for libraries that have been there."""
    async with http_process("--log-level", "warn") as endpoint:
        yield endpoint.url


def views(reply: Any) -> dict[str, str]:
    """The parts of a client's result that a model can see; an agent library does show them."""
    if not isinstance(reply, dict) or "content" not in reply:
        return {"as shown": json.dumps(reply).replace('\\"', '"')}
    blocks = [block["text"] for block in reply["content"]]
    structured = reply.get("structuredContent")
    return {
        "first block": blocks[0],
        "all blocks": "\n".join(blocks),
        "structured content": json.dumps(structured) if structured else "\n".join(blocks),
    }


def found(pattern: re.Pattern[str], reply: Any, *, but: str = "") -> str:
    """The one id that every view has, `but` one."""
    ids = {view: match[1] if (match := pattern.search(text)) else None for view, text in views(reply).items()}
    ids.pop(but, None)
    assert len(set(ids.values())) == 1, (ids, reply)
    [only] = set(ids.values())
    assert only is not None, reply
    return only


def assert_all_say(reply: Any, *words: str) -> None:
    for view, text in views(reply).items():
        assert [word for word in words if word not in text] == [], (view, reply)


async def book_a_table(client: ForeignClient) -> None:
    """Ids come from what was shown, and from nowhere else."""
    asking = await client.call("execute_tool", server="demo", tool="book_table")
    assert_all_say(asking, "how many guests, and when?", "19:30", "window", "respond_to_elicitation", "get_task_result")
    task_id, request_id = found(TASK_ID, asking), found(REQUEST_ID, asking)

    refused = await client.call("execute_tool", server="nobody", tool="add")
    assert_all_say(refused, "No server is called")
    for reminding in [refused, await client.call("execute_tool", **ADD), await client.call("list_servers")]:
        assert found(REQUEST_ID, reminding, but="first block") == request_id

    answered = await client.call("respond_to_elicitation", request_id=request_id, action="accept", content=ANSWER)
    assert_all_say(answered, request_id, "accept")
    booked = await client.call("get_task_result", task_id=task_id)
    assert_all_say(booked, "Chez Demo", "19:30")

    after = await client.call("execute_tool", **ADD)
    assert "pending_client_action" not in json.dumps(after)


async def tell_the_story(program: Program, place: dict[str, Any]) -> None:
    async with a_foreign_client(program, place) as client:
        assert client.hello.get("version", program.version) == program.version
        assert client.hello["tools"] == [tool.name for tool in TOOLS]
        await use_a_tool(client)
        await fetch_a_task(client)
        await book_a_table(client)


async def use_a_tool(client: ForeignClient) -> None:
    added = await client.call("add_server", **DEMO)
    assert_all_say(added, '"connected"')
    total = await client.call("execute_tool", **ADD)
    assert_all_say(total, "42")
    assert {part for part, words in PARTS.items() if words in json.dumps(total)} == client.program.shows
    dug = await client.call("execute_tool", **DIG)
    assert_all_say(dug, DUG)
    if isinstance(dug, dict) and "steps" in dug:  # it supports progress
        assert dug["steps"][:3] == [1, 2, 3]  # the last comes with the result, and some clients then drop it


async def fetch_a_task(client: ForeignClient) -> None:
    promoted = await client.call("execute_tool", **DIG, timeout_ms=0)
    dug = await client.call("get_task_result", task_id=found(TASK_ID, promoted))
    assert_all_say(dug, DUG)


async def at_the_plain_url_and_over_stdio(url: str, program: Program) -> None:
    async with asyncio.TaskGroup() as both:
        both.create_task(tell_the_story(program, {"url": url}))
        both.create_task(tell_the_story(program, emceepee_on_stdio()))


@pytest.mark.parametrize("name", matrix(CLIENTS, representatives=QUICK_CLIENTS))
async def test_a_client_calls_a_tool_fetches_a_task_and_answers_a_question(url: str, name: str) -> None:
    await at_the_plain_url_and_over_stdio(url, CLIENTS[name])


@pytest.mark.parametrize("name", matrix(AGENTS, representatives=QUICK_AGENTS))
async def test_a_model_finds_task_and_question_in_the_output_of_its_library(url: str, name: str) -> None:
    await at_the_plain_url_and_over_stdio(url, AGENTS[name])


@pytest.mark.parametrize(
    ("sdk", "mode"),
    matrix(itertools.product(SDKS, ("legacy", "2026-07-28")), representatives=[("mcp-2", "2026-07-28")]),
)
async def test_a_client_with_a_fixed_version_calls_a_tool_fetches_a_task_and_answers_a_question(
    own_url: str, sdk: str, mode: str
) -> None:
    await tell_the_story(SDKS[sdk][mode], {"url": own_url})


async def test_a_client_with_one_connection_per_call_keeps_its_task_and_question_by_a_name_in_the_url(
    url: str,
) -> None:
    await tell_the_story(LANGCHAIN, {"url": f"{url}?session=langchain"})


async def test_a_client_that_starts_emceepee_per_call_keeps_its_task_and_question_by_a_daemon() -> None:
    async with home() as user:
        flags = ("--attach", "auto", "--session", "langchain", "--idle-exit", "60")
        await tell_the_story(LANGCHAIN, emceepee_on_stdio(*flags, env=user.env))


async def test_a_client_that_starts_emceepee_per_call_learns_why_its_task_is_gone_and_how_to_keep_it(
    tmp_path: Path,
) -> None:
    """In memory, each call has its own session. A named session in a file outlives the process; the call does not."""
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {"demo": {key: DEMO[key] for key in ("command", "args", "env")}}}))
    named = ("--state", f"sqlite:{tmp_path}/state.db", "--session", "langchain")
    for flags, words in (((), "add the flags --attach auto --session NAME"), (named, "emceepee was restarted while")):
        async with a_foreign_client(LANGCHAIN, emceepee_on_stdio("--config", str(config), *flags)) as client:
            promoted = await client.call("execute_tool", **DIG | {"args": {"seconds": 60}}, timeout_ms=0)
            lost = await client.call("get_task_result", task_id=found(TASK_ID, promoted))
            assert words in json.dumps(lost)


async def test_a_client_with_one_connection_per_call_has_to_name_its_session(url: str) -> None:
    async with a_foreign_client(LANGCHAIN, {"url": url}) as client:
        await client.call("add_server", **DEMO | {"name": "demo2"})
        promoted = await client.call("execute_tool", **DIG | {"server": "demo2"}, timeout_ms=0)
        lost = await client.call("get_task_result", task_id=found(TASK_ID, promoted))
        assert "add ?session=NAME to the URL" in json.dumps(lost)
