"""The limits of scripts. Each attack ends only its own script."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from emceepee.codemode import call_queue, engine, script_workers
from emceepee.codemode.script import Script
from emceepee.state.limits import Limits
from support.backends.scripted_backend import ScriptedBackend
from support.figures import record_figure
from support.sessions.scene import Scene, a_scene
from support.sessions.scripts import failure_of, issue_tracker, result_of, run
from support.system.processes import is_alive
from support.waiting import eventually

SECONDS = 1.0  # that a script may compute here
SMALL = Limits(
    script_compute_seconds=SECONDS,
    script_memory_bytes=16 << 20,
    script_result_bytes=10_000,
    script_log_bytes=1000,
)


@pytest.fixture
async def scene(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(call_queue, "CALLS_PER_SCRIPT", 10)
    monkeypatch.setattr(script_workers, "CALLS_PER_SCRIPT", 10)
    monkeypatch.setattr(engine, "SCRIPT_CODE_BYTES", 100_000)
    async with a_scene(limits=SMALL, tracker=issue_tracker()) as scene:
        yield scene


def unchecked(code: str) -> str:
    """An equal attack where the check before the run does not see it."""
    return f"exec({code!r})"


FILES = [
    "open('/etc/passwd').read()",
    "import pathlib\npathlib.Path('/etc/passwd').read_text()",
    "import pathlib\npathlib.Path('/tmp/x').write_text('x')",
    "import os\nos.listdir('/')",
    "import io\nio.open('/etc/passwd')",
    "import os\nos.remove('/tmp/x')",
]
NETWORK = ["import socket\nsocket.create_connection(('127.0.0.1', 80))", "import urllib.request", "import http.client"]
ENVIRONMENT = ["import os\nos.environ['PATH']", "import os\nos.getenv('PATH') or 1 / 0"]
PROCESSES = [
    "import subprocess\nsubprocess.run(['id'])",
    "import os\nos.system('id')",
    "import os\nos.fork()",
    "import os\nos.kill(1, 9)",
    "import multiprocessing",
    "import ctypes",
]
IMPORTS = [
    "import emceepee",
    "import pydantic_monty",
    "import importlib",
    "import builtins",
    "__import__('os').system('id')",
    "import sys\nsys.modules",
    "import gc",
    "import pickle",
]
WALKS = [
    "().__class__.__bases__[0].__subclasses__()",
    "mcp.__class__",
    "mcp.__dict__",
    "mcp.call_tool.__globals__",
    "mcp.call_tool.__self__",
    "(lambda: 0).__code__",
    "(lambda: 0).__globals__",
    "getattr(mcp, '__init__').__globals__",
    "mcp._session",
    "mcp.request",
    "'{0.__class__.__mro__}'.format(mcp)",
    "try:\n    1 / 0\nexcept Exception as error:\n    error.__traceback__.tb_frame",
]


@pytest.mark.parametrize("code", [*FILES, *NETWORK, *ENVIRONMENT, *PROCESSES, *IMPORTS, *WALKS])
@pytest.mark.parametrize("is_checked", [True, False])
async def test_sandbox_escapes_fail(scene: Scene, code: str, is_checked: bool) -> None:
    error = await failure_of(scene, code if is_checked else unchecked(code))
    assert error["message"]
    assert "root:" not in str(error)


async def test_definitions_in_a_script_do_not_affect_the_host(scene: Scene) -> None:
    code = "class Evil:\n    def __repr__(self): return mcp.log('ran') or 'x'\n    attributes = 3\n[Evil(), Evil]"
    value = await run(scene, code)
    assert value["success"]
    assert value["stats"]["mcpCalls"] == 0


# Endless and boundless.


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "sum(range(10 ** 12))",
        "try:\n    while True: pass\nexcept BaseException:\n    while True: pass",
        "async def f():\n    while True: await asyncio.sleep(0) if False else None\nawait f()",
        "while True: print('x' * 1000)",
    ],
)
async def test_an_endless_loop_in_a_script_is_stopped(scene: Scene, code: str) -> None:
    began = asyncio.get_running_loop().time()
    error = await failure_of(scene, code)
    took = asyncio.get_running_loop().time() - began
    assert (error["name"], "computed for more than 1 s" in error["message"]) == ("TimeoutError", True)
    assert took < SECONDS + 3


@pytest.mark.parametrize(
    "code",
    [
        "x = []\nwhile True: x.append('x' * 1000)",
        "'x' * 10 ** 10",
        "[0] * 10 ** 10",
        "2 ** 10 ** 9",
        "f'{1:>1000000000}'",
        "'a'.join(['b' * 1000] * 10 ** 6)",
        "x = 'a'\nwhile True: x += x",
    ],
)
async def test_a_script_over_its_memory_limit_is_stopped(scene: Scene, code: str) -> None:
    assert (await failure_of(scene, code))["name"] in ("MemoryError", "SandboxCrashed")


async def test_endless_recursion_in_a_script_is_stopped(scene: Scene) -> None:
    assert (await failure_of(scene, "def f(): return f()\nf()"))["name"] == "RecursionError"


async def test_deeply_nested_source_code_is_rejected(scene: Scene) -> None:
    assert (await failure_of(scene, "(" * 50_000))["name"] == "SyntaxError"
    assert (await failure_of(scene, unchecked("-" * 20_000 + "1")))["message"]


async def test_a_script_over_the_length_limit_is_rejected(scene: Scene) -> None:
    error = await scene.error("codemode_execute", code="x" * 100_001)
    assert (error["code"], "at most 100000" in error["message"]) == ("ERR_INVALID_ARGUMENTS", True)


async def test_a_flood_of_script_output_is_truncated(scene: Scene) -> None:
    value = await run(scene, "for _ in range(1000): print('x' * 1000)\n1")
    assert (value["success"], sum(map(len, value["logs"])) < 1100) == (True, True)
    assert value["logs"][-1] == "… 1000000 more bytes were dropped"


async def test_a_script_result_over_the_size_limit_is_rejected(scene: Scene) -> None:
    error = await failure_of(scene, "'x' * 20_000")
    assert (error["name"], "takes more than 10000 bytes" in error["message"]) == ("ResultTooLarge", True)
    error = await failure_of(scene, r"'\n' * 9_000")
    assert (error["name"], "18002 bytes; at most 10000" in error["message"]) == ("ResultTooLarge", True)


@pytest.mark.parametrize(
    "code",
    [
        "x = {}\nfor _ in range(3000): x = {'a': x}\nx",
        "x = {}\nfor _ in range(3000): x = {'a': x}\nawait mcp.tool('list_timers', x)",
        "10 ** 5000",
    ],
)
async def test_a_value_that_cannot_leave_the_sandbox_is_an_error(scene: Scene, code: str) -> None:
    assert (await failure_of(scene, code))["name"] in ("ValueError", "TypeError")


async def test_a_cyclic_result_is_cut(scene: Scene) -> None:
    assert await result_of(scene, "x = []\nx.append(x)\nx") == ["[...]"]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("while True: await mcp.list_servers()", 1),
        ("while True:\n    try: await mcp.list_servers()\n    except BaseException: pass", 2),
        ("mcp.log('ä€')\n\nawait asyncio.gather(*[mcp.list_servers() for _ in range(1000)])", 3),
        ("async def call():\n    return await mcp.list_servers()\n\nfor _ in range(11):\n    await call()", 2),
        ("mcp.sleep(0)\nfor _ in range(11):\n    mcp.list_servers()", 3),
        (unchecked("for _ in range(11): mcp.list_servers()"), None),
    ],
)
async def test_a_flood_of_calls_ends_the_script_with_the_line_in_the_error(
    scene: Scene, code: str, line: int | None
) -> None:
    value = await run(scene, code)
    assert (value["error"]["name"], value["stats"]["mcpCalls"]) == ("CallLimit", 10)
    assert value["error"].get("line") == line


async def test_a_flood_of_sleeps_and_log_lines_ends_the_script(scene: Scene) -> None:
    value = await run(scene, "while True: mcp.log('x')")
    assert value["error"]["name"] in ("RuntimeError", "TimeoutError")
    value = await run(scene, "while True: await asyncio.sleep(0)")
    assert value["error"]["name"] in ("RuntimeError", "TimeoutError", "CallLimit")


async def test_scripts_over_the_limit_per_session_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SCRIPTS_PER_SESSION", 2)
    backend = ScriptedBackend()
    async with a_scene(slow=backend) as scene:
        waiting = [scene.start("codemode_execute", code="await mcp.call_tool('slow', 'echo')") for _ in range(2)]
        asked = [await backend.next_asked() for _ in range(2)]
        error = await scene.error("codemode_execute", code="1")
        assert (error["code"], "2 scripts" in error["message"]) == ("ERR_LIMIT_EXCEEDED", True)
        for one in asked:
            one.reply(content=[])
        await asyncio.gather(*waiting)
        assert await result_of(scene, "1") == 1


async def test_scripts_over_the_limit_per_principal_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "SCRIPTS_PER_PRINCIPAL", 1)
    backend = ScriptedBackend()
    async with a_scene(slow=backend) as scene:
        waiting = scene.start("codemode_execute", code="await mcp.call_tool('slow', 'echo')")
        asked = await backend.next_asked()
        error = await scene.error("codemode_execute", code="1")
        assert (error["code"], "one principal" in error["message"]) == ("ERR_LIMIT_EXCEEDED", True)
        asked.reply(content=[])
        await waiting


# Workers.


def worker_of(scene: Scene) -> int:
    """The process of the one script that runs."""
    (call,) = [call for call in scene.session.calls.in_flight("emceepee") if isinstance(call.connection, Script)]
    assert isinstance(call.connection, Script)
    pid = call.connection.worker_pid
    assert pid is not None
    return pid


async def test_a_killed_sandbox_worker_ends_its_own_script_and_no_other() -> None:
    one, other = ScriptedBackend(), ScriptedBackend()
    async with a_scene(slow=one) as victim, a_scene(slow=other) as bystander:
        code = "x = await mcp.call_tool('slow', 'echo')\nx"
        killed, spared = (scene.start("codemode_execute", code=code) for scene in (victim, bystander))
        asked = [await backend.next_asked() for backend in (one, other)]
        os.kill(worker_of(victim), signal.SIGKILL)
        for each in asked:
            each.reply(content=[{"type": "text", "text": "ok"}])
        assert (await killed)["structuredContent"]["error"]["name"] == "SandboxCrashed"
        assert (await spared)["structuredContent"]["result"] == "ok"
        assert await result_of(victim, "1 + 1") == 2


async def test_a_sandbox_worker_has_no_environment_no_files_and_no_permission_to_open_any() -> None:
    backend = ScriptedBackend()
    async with a_scene(slow=backend) as scene:
        call = scene.start("codemode_execute", code="await mcp.call_tool('slow', 'echo')")
        asked = await backend.next_asked()
        pid = worker_of(scene)
        process = Path(f"/proc/{pid}")
        assert process.joinpath("environ").read_bytes() == b""
        limits = process.joinpath("limits").read_text()
        for name in ("Max open files", "Max file size", "Max processes", "Max core file size"):
            line = next(line for line in limits.splitlines() if line.startswith(name))
            assert line.removeprefix(name).split()[:2] == ["0", "0"], line
        asked.reply(content=[])
        await call
    await eventually(lambda: not is_alive(pid), what="the worker has ended")


async def test_an_endless_loop_does_not_delay_scripts_of_other_callers(scene: Scene) -> None:
    async with a_scene(tracker=issue_tracker()) as other:
        looping = scene.start("codemode_execute", code="while True: pass")
        began = asyncio.get_running_loop().time()
        assert await result_of(other, "await mcp.call_tool('tracker', 'read_text')") == "plain words"
        took = asyncio.get_running_loop().time() - began
        await looping
    record_figure(f"a script beside an endless one took {took * 1000:.0f} ms")
    assert took < SECONDS
