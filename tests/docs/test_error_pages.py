"""Every error code has a page that replies link to, and the page shows the real messages."""

import json
import re
import tomllib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import pytest

from emceepee.backends.link import LinkError, LinkFailure, NoAccess, RpcError
from emceepee.errors import DOCS_URL, HELP_URL, ErrorCode
from emceepee.state.limits import Limits
from emceepee.state.tool_filter import ToolFilter
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ALL_CAPABILITIES, ScriptedBackend
from support.documentation import ROOT, Block, Page
from support.fakes.clock import settle
from support.sessions.installation import an_installation
from support.sessions.replies import own_part
from support.sessions.scene import Scene, a_scene, scripted_spec

FOLDER = ROOT / "docs" / "errors"
HEADINGS = {"what-happened", "why", "what-to-do"}
WRONG = "wrong "  # before the name of a tool, where the arguments do not fit it
LONGEST_ADDRESS = 80  # bytes: it stands in every reply that is an error
_ULID = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
Stage = Callable[[], AbstractAsyncContextManager[Scene]]


def a_github() -> ScriptedBackend:
    return ScriptedBackend(tools=["search_issues", "create_issue", "delete_repository"])


@asynccontextmanager
async def usual() -> AsyncIterator[Scene]:
    """Two servers that work."""
    async with a_scene(github=a_github(), files=ScriptedBackend(tools=["read_file"])) as scene:
        yield scene.quiet()


@asynccontextmanager
async def without_the_tool() -> AsyncIterator[Scene]:
    async with usual() as scene:
        scene.backends["github"].answers["tools/call"] = refusing(-32602, "Unknown tool: serch_issues")
        yield scene


@asynccontextmanager
async def refusing_server() -> AsyncIterator[Scene]:
    async with usual() as scene:
        scene.backends["github"].answers["tools/call"] = refusing(-32603, "upstream API: 502 Bad Gateway")
        yield scene


@asynccontextmanager
async def working_task() -> AsyncIterator[Scene]:
    async with a_scene(files=ScriptedBackend(tools=["index"])) as scene:
        call = scene.start("execute_tool", server="files", tool="index", timeout_ms=100)
        await settle()
        await scene.clock.advance(1)
        await call
        yield scene.quiet()


@asynccontextmanager
async def crashing_server() -> AsyncIterator[Scene]:
    """It exits as soon as it is called."""
    backend = ScriptedBackend(tools=["convert"], is_process=True)

    def crash(_: JsonObject) -> JsonObject:
        backend.link.crash(139)
        raise LinkError(LinkFailure.CLOSED, "exited with code 139")

    backend.answers["tools/call"] = crash
    async with a_scene(converter=backend) as scene:
        yield scene.quiet()


@asynccontextmanager
async def with_login() -> AsyncIterator[Scene]:
    backend = ScriptedBackend()
    backend.refuses = NoAccess("someone has to log in to it", wants_person=True)
    async with a_scene(tracker=backend) as scene:
        yield scene.quiet()


@asynccontextmanager
async def full_of_timers() -> AsyncIterator[Scene]:
    async with a_scene(limits=Limits(timers_per_session=2)) as scene:
        for number in (1, 2):
            await scene.value("set_timer", duration_ms=60_000, message=f"number {number}")
        yield scene


@asynccontextmanager
async def filtered() -> AsyncIterator[Scene]:
    spec = replace(scripted_spec("github"), tools=ToolFilter(denied=("delete_*",)))
    async with a_scene(specs=[spec], github=a_github()) as scene:
        yield scene.quiet()


@asynccontextmanager
async def without_subscriptions() -> AsyncIterator[Scene]:
    backend = a_github()
    backend.facts = replace(backend.facts, capabilities=ALL_CAPABILITIES | {"resources": {}})
    async with a_scene(github=backend) as scene:
        yield scene.quiet()


def refusing(code: int, message: str) -> Callable[[JsonObject], JsonObject]:
    def refuse(_: JsonObject) -> JsonObject:
        raise RpcError({"code": code, "message": message})

    return refuse


STAGES: dict[ErrorCode, Stage] = {
    ErrorCode.TOOL_NOT_FOUND: without_the_tool,
    ErrorCode.EXECUTION_FAILED: refusing_server,
    ErrorCode.TIMEOUT: working_task,
    ErrorCode.SERVER_DISCONNECTED: crashing_server,
    ErrorCode.LOGIN_NEEDED: with_login,
    ErrorCode.LIMIT_EXCEEDED: full_of_timers,
    ErrorCode.NOT_ALLOWED: filtered,
    ErrorCode.UNSUPPORTED: without_subscriptions,
}


def page_of(code: ErrorCode) -> Page:
    return Page(FOLDER / f"{code}.md")


def example_of(code: ErrorCode) -> tuple[Block, Block]:
    """The call on its page, and the reply."""
    call, reply = (block for block in page_of(code).blocks() if block.language == "json")
    assert reply.label == "reply"
    return call, reply


async def play(code: ErrorCode, tool: str, arguments: JsonObject) -> JsonObject:
    """The structured content of the reply, without notices."""
    stage = STAGES.get(code, usual)
    async with stage() as scene, an_installation() as place:
        if working := scene.session.tasks.working():
            arguments = arguments | {"task_id": working[0].task_id}
        caller = RequestContext(directory=place.directory)
        call = scene.start(tool, caller=caller, **arguments)
        await settle()
        await scene.clock.advance(60)  # for what waits
        result = await call
        assert result["isError"]
        return own_part(result["structuredContent"])


def test_every_error_code_has_a_page_and_every_error_page_a_code() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*")) == sorted(ErrorCode)


def test_the_address_of_an_error_page_is_on_the_documentation_site() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["urls"]["Documentation"] == DOCS_URL
    assert f"site_url: {DOCS_URL}\n" in (ROOT / "mkdocs.yml").read_text("utf-8")
    assert f"{DOCS_URL}{FOLDER.relative_to(ROOT / 'docs').as_posix()}/" == HELP_URL


@pytest.mark.parametrize("code", ErrorCode)
def test_the_address_of_an_error_page_is_short(code: ErrorCode) -> None:
    assert len(code.help_url) <= LONGEST_ADDRESS


@pytest.mark.parametrize("code", ErrorCode)
def test_an_error_page_explains_the_event_the_cause_and_the_fix(code: ErrorCode) -> None:
    page = page_of(code)
    assert page.text.startswith(f"# {code}\n")
    assert page.anchors() >= HEADINGS


@pytest.mark.parametrize("code", ErrorCode)
async def test_the_reply_on_an_error_page_is_the_reply_to_its_call(code: ErrorCode) -> None:
    call, reply = example_of(code)
    told = await play(code, call.label.removeprefix(WRONG), json.loads(call.body))
    assert told["error"]["code"] == code
    assert told["error"]["details"]["help"] == code.help_url
    assert _ULID.sub("ID", json.dumps(told)) == _ULID.sub("ID", json.dumps(json.loads(reply.body)))
