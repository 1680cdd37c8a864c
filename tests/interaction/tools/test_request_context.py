"""The facts about a caller, and the ways in which a request ends."""

import asyncio

from mcp_types import CLIENT_INFO_META_KEY

from emceepee.sessions.call import Call
from emceepee.sessions.session import Session
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Request
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.installation import an_installation
from support.sessions.request_contexts import call_tool
from support.sessions.scene import a_scene


async def test_a_session_opened_by_a_call_shows_the_name_of_its_caller() -> None:
    async with an_installation() as place:
        meta = {CLIENT_INFO_META_KEY: {"name": "agent", "version": "3"}}
        request = Request(1, "tools/call", {"name": "open_session", "_meta": meta})
        await RequestContext(request, principal="ada", directory=place.directory).open_session()
        assert [session.profile.label for session in place.directory.sessions_of("ada")] == ["agent 3"]


async def test_a_request_context_shows_its_request_and_its_progress() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        context = RequestContext(Request(7, "tools/call", None))
        assert repr(context) == "<RequestContext 7 tools/call idle>"
        params = {"name": "execute_tool", "arguments": {"server": "demo", "tool": "slow"}}
        context.task = asyncio.create_task(call_tool(params, scene.session, context))
        asked = await scene.backends["demo"].next_asked()
        assert repr(context).startswith("<RequestContext 7 tools/call running <Call demo slow")
        context.abandon()
        assert repr(context).startswith("<RequestContext 7 tools/call abandoned <Call demo slow")
        asked.reply(content=[])
        await asyncio.wait({context.task})
    other = RequestContext(Request("a", "ping", None))
    other.is_cancelled = True
    assert repr(other) == "<RequestContext 'a' ping cancelled>"


async def test_a_request_that_is_detached_while_its_call_runs_is_answered_with_a_task() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        context = RequestContext()
        params = {"name": "execute_tool", "arguments": {"server": "demo", "tool": "slow"}}
        context.task = asyncio.create_task(call_tool(params, scene.session, context))
        await scene.backends["demo"].next_asked()
        context.detach()
        result = await asyncio.wait_for(context.task, 5)
        assert result["structuredContent"]["proxy_task"]["status"] == "working"
        session, call = began(context)
        assert session is scene.session
        assert call.state.has_task


def began(context: RequestContext) -> tuple[Session, Call]:
    assert context.call is not None
    return context.call
