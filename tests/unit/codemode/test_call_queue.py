"""The requests of a script: some are answered at once, and others become calls."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest

from emceepee.codemode import call_queue
from emceepee.codemode.call_queue import CallQueue
from emceepee.codemode.failures import ScriptFailure
from emceepee.codemode.kept_script import PendingCall
from emceepee.codemode.private_scripts import ANSWERING_TOOLS
from emceepee.codemode.script_log import ScriptLog
from emceepee.codemode.server_modules import ModuleFunction, ServerModules
from emceepee.codemode.values import Conversions, Size
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.tools_for_scripts import ToolsForScripts
from support.sessions.scene import Scene, a_scene

if TYPE_CHECKING:
    from pydantic_monty import AsyncFunctionSnapshot

LATER = {"future": ...}


@dataclass
class Asked:
    """A call as the sandbox reports it."""

    function_name: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    is_os_function: bool = False
    call_id: int = 7


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(call_queue, "CALLS_PER_SCRIPT", 2)
    async with a_scene() as made:
        yield made


@pytest.fixture
def log() -> ScriptLog:
    return ScriptLog(1000)


@pytest.fixture
def queue(scene: Scene, log: ScriptLog) -> CallQueue:
    names, droppable = {"from_": "from"}, frozenset({"limit"})
    function = ModuleFunction(server="mail box", tool="list-mails", names=names, droppable=droppable)
    return a_queue(scene, log, ServerModules({"servers.mail_box.list_mails": function}))


def a_queue(
    scene: Scene,
    log: ScriptLog,
    modules: ServerModules | None = None,
    *,
    code: str = "",
    under_way: tuple[PendingCall, ...] = (),
) -> CallQueue:
    return CallQueue(
        scene.session,
        log,
        modules or ServerModules(),
        tools=ToolsForScripts(TOOLS),
        conversions=Conversions(),
        under_way=lambda: under_way,
        code=code,
    )


async def ask(queue: CallQueue, name: str, *args: Any, is_os_function: bool = False, **kwargs: Any) -> dict[str, Any]:
    asked = Asked(name, args, kwargs, is_os_function)
    return await queue.answer(cast("AsyncFunctionSnapshot", asked))


def only(queue: CallQueue) -> PendingCall:
    (call,) = queue.take()
    assert len(queue) == 0
    return call


async def test_a_script_method_becomes_a_call_of_its_tool(queue: CallQueue) -> None:
    assert await ask(queue, "mcp.listTools", "git.*") == LATER
    call = only(queue)
    assert (call.number, call.function, call.key) == (7, "list_tools", "tools")
    assert call.arguments == {"detail": "full", "server": "git.*"}
    assert call.call_id
    assert queue.made == 1


async def test_a_function_of_a_server_module_becomes_a_call_with_the_original_names(queue: CallQueue) -> None:
    assert await ask(queue, "servers.mail_box.list_mails", from_="ann", limit=None) == LATER
    assert only(queue).arguments == {"server": "mail box", "tool": "list-mails", "args": {"from": "ann"}}


async def test_any_other_tool_of_emceepee_is_called_by_its_name(queue: CallQueue) -> None:
    assert await ask(queue, "mcp.tool", "list_tasks", {"server": "one"}) == LATER
    assert (call := only(queue)).function == "list_tasks"
    assert call.arguments == {"server": "one"}


@pytest.mark.parametrize(
    ("name", "args", "is_os_function"), [("mcp.sleep", (30,), False), ("asyncio.sleep", (30, None), True)]
)
async def test_a_script_sleep_is_stored_with_its_end_and_counts_as_no_call(
    scene: Scene, queue: CallQueue, name: str, args: tuple[Any, ...], is_os_function: bool
) -> None:
    assert await ask(queue, name, *args, is_os_function=is_os_function) == LATER
    assert only(queue).wakes_at == (scene.clock.now() + timedelta(seconds=30)).isoformat()
    assert queue.made == 0


async def test_a_script_log_line_needs_no_call(queue: CallQueue, log: ScriptLog) -> None:
    assert await ask(queue, "mcp.log", "found", 3) == {"return_value": None}
    assert (log.lines(), len(queue)) == (["found 3"], 0)


@pytest.mark.parametrize(
    ("name", "args", "exception", "words"),
    [
        ("mcp.nothing", (), "NameError", "name 'mcp.nothing' is not defined"),
        ("elsewhere.call_tool", (), "NameError", "is not defined"),
        ("mcp.call_tool", ("a", "b", {}, 4), "TypeError", "takes at most 3 arguments"),
        ("mcp.sleep", ("long",), "TypeError", "seconds: a number from 0 to 1800"),
        ("mcp.sleep", (True,), "TypeError", "seconds: a number"),
        ("mcp.tool", ("codemode_execute", {}), "TypeError", "a script cannot start another one"),
        ("mcp.tool", (1,), "TypeError", "give the name of a tool"),
        ("mcp.call_tool", ("a", "b", {"n": 1 << 20_000}), "TypeError", "too many digits"),
        ("mcp.call_tool", ("a", "b", {"n": ["x" * 1_000_000] * 1000}), "ValueError", "more than 4194304 bytes"),
        ("mcp.call_tool", ("a", "b", {"n": [[0] * 1000] * 1000}), "ValueError", "more than 100000 values"),
        ("servers.mail_box.list_mails", ("ann",), "TypeError", "takes keyword arguments only"),
        ("mcp.log", ("x",) * 1001, "TypeError", "at most 1000 values"),
    ],
)
async def test_an_unknown_script_function_raises_in_the_script(
    queue: CallQueue, name: str, args: tuple[Any, ...], exception: str, words: str
) -> None:
    answer = await ask(queue, name, *args)
    assert (answer["exc_type"], words in answer["message"]) == (exception, True), answer
    assert len(queue) == 0


@pytest.mark.parametrize(("name", "hint"), [("open", ""), ("time.sleep", "Use await asyncio.sleep(seconds).")])
async def test_operating_system_functions_are_refused_in_scripts(queue: CallQueue, name: str, hint: str) -> None:
    answer = await ask(queue, name, is_os_function=True)
    assert answer["exc_type"] == "PermissionError"
    assert answer["message"] == f"{name} is not for scripts: they can only call. {hint}".strip()


async def test_a_script_fails_when_it_exceeds_its_number_of_calls(queue: CallQueue) -> None:
    for _ in range(2):
        await ask(queue, "mcp.list_servers")
    with pytest.raises(ScriptFailure, match="more than 2 calls"):
        await ask(queue, "mcp.list_servers")
    assert (queue.made, len(queue)) == (2, 2)


async def test_the_arguments_of_all_pending_script_calls_count_together(scene: Scene, log: ScriptLog) -> None:
    under_way = PendingCall(number=1, function="execute_tool", arguments={}, size=Size(3_000_000, 10))
    queue = a_queue(scene, log, under_way=(under_way,))
    assert await ask(queue, "mcp.call_tool", "a", "b", {"x": "x" * 1_000_000}) == LATER
    answer = await ask(queue, "mcp.call_tool", "a", "b", {"x": "x" * 1_000_000})
    assert (answer["exc_type"], "more than 4194304 bytes" in answer["message"]) == ("ValueError", True)
    assert len(queue) == 1


@pytest.mark.parametrize("tool", ANSWERING_TOOLS)
async def test_a_script_may_use_an_answering_tool_only_if_its_source_names_it(
    scene: Scene, log: ScriptLog, tool: str
) -> None:
    """A script is classified as private by its source before it runs."""
    wrapped = {"server": "emceepee", "tool": tool}
    for code, outcome in ((f"mcp.tool('{tool}')", LATER), ("mcp.tool('respond_' + rest)", None)):
        queue = a_queue(scene, log, code=code)
        for arguments in ((tool, {}), ("execute_tool", wrapped)):
            answer = await ask(queue, "mcp.tool", *arguments)
            assert answer == outcome or (answer["exc_type"], tool in answer["message"]) == ("TypeError", True)
        assert [call.function for call in queue.take()] == ([tool] * 2 if outcome else [])
