"""The share of notices in the text that a model reads in the demonstration."""

import asyncio
import importlib.util
import sys
from types import ModuleType
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from support.callers.emceepee_process import BOUND
from support.documentation import ROOT
from support.figures import record_figure
from support.sessions.replies import notice_in

MOST = 0.15
STEPS = (
    *("add_a_server", "look_around", "call_a_tool", "call_a_slow_tool"),
    *("let_a_call_become_a_task", "answer_a_question"),
)


@pytest.fixture
def conversation() -> ModuleType:
    spec = importlib.util.spec_from_file_location("conversation", ROOT / "examples" / "conversation.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_notices_are_a_small_part_of_the_text_in_the_demonstration(
    conversation: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The demonstration has two tasks and one question in thirteen calls."""
    texts: list[list[str]] = []
    emceepee = StdioServerParameters(
        command=sys.executable, args=["-m", "emceepee", "--log-level", "warn"], env=conversation.SOURCE_TREE
    )
    async with asyncio.timeout(BOUND), Client(emceepee) as client:
        call_tool = client.call_tool

        async def recording(*arguments: Any, **options: Any) -> Any:
            result = await call_tool(*arguments, **options)
            texts.append([block.text for block in result.content if isinstance(block, TextContent)])
            return result

        monkeypatch.setattr(client, "call_tool", recording)
        for step in STEPS:
            await getattr(conversation, step)(conversation.Talk(client))
    said = [len(text) for blocks in texts for text in blocks]
    noticed = [len(text) for blocks in texts for text in blocks if notice_in(text) is not None]
    share = sum(noticed) / sum(said)
    record_figure(f"{len(texts)} calls: {sum(noticed)} of {sum(said)} characters are notices, {share:.1%}")
    assert (len(texts), share < MOST) == (13, True)
