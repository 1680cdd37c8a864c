"""A command with a short answer loads few modules, and no process loads modules that it does not use."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.callers.http_process import http_process
from support.callers.replay_process import replaying
from support.figures import record_figure
from support.programs.listing_emceepee import MODULES_FILE
from support.recordings import lines

HEAVY = (
    *("asyncio", "emceepee.app.session_parts", "emceepee.config.settings", "mcp", "pydantic", "rich"),
    *("ruamel.yaml", "ssl", "tomlkit", "uvloop"),
)
LOADED = f"import sys; import emceepee.cli.main; print([name for name in {HEAVY} if name in sys.modules])"
MOST_SECONDS = 0.25
BOUND = 60.0  # seconds, on a busy machine
LISTING = "support.programs.listing_emceepee"
# Not before someone wants what needs it. The SDK alone is half a second and 40 MB.
RARELY_NEEDED = (
    *(
        "mcp",
        "mcp_types",
        "httpx",
        "httpx2",
        "starlette",
        "sse_starlette",
        "opentelemetry",
    ),  # the SDK, and what it brings
    *("jwt", "cryptography"),  # until a token is to be verified, or a secret encrypted
    *("rich", "tomlkit", "ruamel"),  # for commands
    *("prometheus_client", "redis", "hiredis", "keyring", "numpy", "pydantic_monty"),
)
FOR_HTTP = (
    "uvicorn",
    "click",
    "emceepee.app.http_app",
    "emceepee.console",
    "emceepee.server.http",
    "emceepee.replicas",
)
FOR_FILES = ("watchfiles", "anyio")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
CONVERSATION = (
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "resources/list"},
    {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"name": "list_servers", "arguments": {}}},
)
TRIES = 3  # of which the quickest counts: the first may have to compile


def test_the_command_line_is_parsed_before_other_modules_are_loaded() -> None:
    """`--version`, `--help`, and configuration errors are answered at once."""
    done = subprocess.run((sys.executable, "-c", LOADED), capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.alone
@pytest.mark.parametrize(
    "arguments",
    [
        *(["--version"], ["--help"], ["import", "--dry-run"], ["undo", "--list"]),
        *(["call", "--help"], ["servers", "list"], ["version", "--json"], ["config", "schema"], ["completion", "bash"]),
    ],
    ids=" ".join,
)
def test_commands_without_a_protocol_answer_at_once(arguments: list[str], tmp_path: Path) -> None:
    """The test measures processor time, which excludes other processes."""
    servers = tmp_path / ".cursor" / "mcp.json"
    servers.parent.mkdir()
    servers.write_text('{"mcpServers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}}')
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path),
    }
    taken = []
    for _ in range(TRIES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = (sys.executable, "-m", "emceepee", *arguments)
        subprocess.run(command, capture_output=True, timeout=30, check=True, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    record_figure(f"emceepee {' '.join(arguments)} takes {min(taken):.2f} s of processor time")
    assert min(taken) < MOST_SECONDS


def loaded_of(names: tuple[str, ...], file: Path) -> list[str]:
    loaded = set(file.read_text().split())
    return [name for name in names if name in loaded]


def listing(tmp_path: Path) -> dict[str, str]:
    """The environment of an emceepee that lists its modules, and has no configuration."""
    return {MODULES_FILE: str(tmp_path / "modules"), "EMCEEPEE_CONFIG": "", "XDG_STATE_HOME": str(tmp_path)}


def in_it(tmp_path: Path) -> dict[str, str]:
    places = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": places, **listing(tmp_path)}


def test_a_command_that_only_prints_text_loads_few_modules(tmp_path: Path) -> None:
    command = (sys.executable, "-m", LISTING, "version")
    subprocess.run(command, capture_output=True, timeout=BOUND, check=True, env=in_it(tmp_path))
    assert loaded_of((*HEAVY, *RARELY_NEEDED, *FOR_HTTP, *FOR_FILES), tmp_path / "modules") == []


def test_a_conversation_on_pipes_loads_neither_the_sdk_nor_http_server_modules(tmp_path: Path) -> None:
    said = "".join(f"{json.dumps(message)}\n" for message in CONVERSATION).encode()
    command = (sys.executable, "-m", LISTING)
    done = subprocess.run(command, input=said, capture_output=True, timeout=BOUND, check=True, env=in_it(tmp_path))
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines()) if "id" in answer}
    assert all("result" in answers[number] for number in (1, 2, 3, 4)), done.stderr
    assert loaded_of((*RARELY_NEEDED, *FOR_HTTP, *FOR_FILES), tmp_path / "modules") == []


@pytest.mark.parametrize("state", ["memory", "sqlite"])
async def test_an_idle_serve_loads_neither_the_sdk_nor_unused_modules(tmp_path: Path, state: str) -> None:
    async with http_process("--state", state, env=listing(tmp_path), module=LISTING) as endpoint:
        for caller in (await endpoint.caller(), endpoint.modern()):
            for name in ("tools/list", "resources/list"):
                assert "result" in await caller.request(name)
        endpoint.process.send_signal(signal.SIGTERM)
        await endpoint.process.wait()
    assert loaded_of(RARELY_NEEDED, tmp_path / "modules") == []


FOR_SESSIONS = (
    *("emceepee.sessions", "emceepee.tools", "emceepee.server.protocol_methods", "emceepee.config.settings"),
    "pydantic",
)


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    file = tmp_path / "shop.jsonl"
    file.write_bytes(b"\n".join(lines()))
    return file


def test_a_replay_on_pipes_loads_neither_sessions_nor_http_server_modules(recording: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-m", LISTING, "replay", str(recording))
    said = json.dumps(CONVERSATION[0]).encode() + b"\n"
    done = subprocess.run(command, input=said, capture_output=True, timeout=BOUND, check=True, env=in_it(tmp_path))
    assert b'"serverInfo"' in done.stdout
    loaded = loaded_of((*RARELY_NEEDED, *FOR_HTTP, *FOR_FILES, *FOR_SESSIONS), tmp_path / "modules")
    assert loaded == []


async def test_a_replay_over_http_loads_neither_sessions_nor_the_console(recording: Path, tmp_path: Path) -> None:
    async with replaying(recording, module=LISTING, env=in_it(tmp_path)) as replay:
        for caller in (await replay.caller(), replay.modern()):
            assert "result" in await caller.request("ping")
    names = (*RARELY_NEEDED, *FOR_SESSIONS, "emceepee.app.http_app", "emceepee.console", "emceepee.replicas")
    assert loaded_of(names, tmp_path / "modules") == []


TRACING = (
    *("opentelemetry.sdk", "opentelemetry.exporter", "opentelemetry.proto", "google.protobuf"),
    "emceepee.telemetry.otel",
)
CALLS = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},'
    b'"clientInfo":{"name":"tests","version":"1"}}}\n'
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}\n'
    b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_servers","arguments":{}}}\n'
)


@pytest.mark.parametrize("flags", [(), ("--otel",)], ids=["plain", "otel"])
def test_tracing_is_loaded_only_on_request(flags: tuple[str, ...]) -> None:
    command = (sys.executable, "-X", "importtime", "-m", "emceepee", "--attach", "never", *flags)
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}
    done = subprocess.run(command, input=CALLS, capture_output=True, timeout=60, check=True, env=environment)
    assert b'"id":3,"result"' in done.stdout
    loaded = {
        line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines() if line.startswith("import")
    }
    assert "emceepee.app.session_parts" in loaded
    assert {name for name in TRACING if name in loaded} == (set(TRACING) if flags else set())
