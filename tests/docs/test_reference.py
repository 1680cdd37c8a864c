"""The reference matches the code, and every public name has an entry."""

import argparse
import asyncio
import importlib.util
import re
import subprocess
import sys
from dataclasses import fields, replace
from types import ModuleType

import pytest

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.backends.spec import ServerEntry
from emceepee.cli.main import build_parser
from emceepee.config.former_limits import FORMER_LIMITS
from emceepee.errors import ErrorCode
from emceepee.state.diagrams import diagrams
from emceepee.state.events import EventType
from emceepee.state.limits import Limits
from emceepee.state.question import Gone
from emceepee.surface import Surface
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.declaration import Tool
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.command_tree import commands_of
from support.documentation import ROOT, Page
from support.sessions.event_delivery import take
from support.sessions.scene import Scene, a_scene

BOUND = 60.0
FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
NOT_SEEN_BY_ONE_SESSION = {"server_added"}


def reference(name: str) -> str:
    return (ROOT / "docs" / "reference" / f"{name}.md").read_text("utf-8")


@pytest.fixture
def generate() -> ModuleType:
    """The generator, as a module of its own for each test."""
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_equals_the_output_of_its_generator() -> None:
    """If this fails, run `python docs/generate.py` and review the changes."""
    command = [sys.executable, "docs/generate.py", "--check"]
    check = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BOUND, check=False)
    assert (check.returncode, check.stdout + check.stderr) == (0, "")


def test_the_reference_contains_no_other_pages(generate: ModuleType) -> None:
    written = {*(ROOT / "docs" / "reference").iterdir(), *(ROOT / "docs" / "how-to" / "clients").iterdir()}
    written.add(ROOT / "docs" / "how-to" / "set-limits.md")
    assert written == {path for path in generate.pages() if ROOT / "docs" in path.parents}


# Entries.


def test_every_tool_has_a_reference_entry() -> None:
    headings = Page(ROOT / "docs" / "reference" / "tools.md").anchors()
    assert [tool.name for tool in TOOLS if tool.name not in headings] == []


def test_every_tool_documents_its_return_value() -> None:
    entries = reference("tools").split("\n### ")[1:]
    assert [entry.partition("\n")[0] for entry in entries if "\nReturns: " not in entry] == []
    assert len(entries) == len(TOOLS)


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool.unlisted], ids=lambda tool: tool.name)
def test_unlisted_arguments_are_marked_in_the_reference(tool: Tool) -> None:
    entries = {entry.partition("\n")[0]: entry for entry in reference("tools").split("\n### ")[1:]}
    (line,) = [line for line in entries[tool.name].splitlines() if line.startswith("Accepted, but not listed: ")]
    assert set(re.findall(r"`(\w+)`", line)) == set(tool.unlisted)
    _, listed = tool.listing(Surface.FULL)
    assert not set(tool.unlisted) & set(listed["properties"])


def test_every_option_of_every_command_has_a_reference_entry() -> None:
    page = reference("cli")
    for command in commands_of(build_parser()):
        title = " ".join(("emceepee", *command.path))
        _, _, section = page.partition(f"\n## {title}\n")
        table = section.partition("\n## ")[0]
        missing = [
            option
            for action in command.arguments
            for option in action.option_strings or ([] if action.nargs == argparse.PARSER else [action.dest])
            if f"`{option}`" not in table
        ]
        assert missing == [], title


def test_every_error_code_has_a_reference_entry() -> None:
    assert [code for code in ErrorCode if f"| [`{code}`](../errors/{code}.md) | " not in reference("errors")] == []


def test_every_limit_has_a_reference_entry() -> None:
    assert [item.name for item in fields(Limits) if f"| `{item.name}` | " not in reference("limits")] == []


def test_every_limit_is_named_on_a_page_besides_the_reference() -> None:
    pages = [path for room in ("how-to", "explanation", "errors") for path in (ROOT / "docs" / room).rglob("*.md")]
    text = "".join(path.read_text("utf-8") for path in pages)
    assert [item.name for item in fields(Limits) if f"`{item.name}`" not in text] == []


def test_every_former_limit_has_a_reference_entry_with_the_fixed_value() -> None:
    table = reference("limits").split("## Fixed limits")[1]
    assert [name for name in FORMER_LIMITS if f"| `{name}` | " not in table] == []


def test_every_key_of_a_server_entry_has_a_reference_entry() -> None:
    assert [name for name in ServerEntry.model_fields if f"| `{name}` | " not in reference("settings")] == []


def test_every_event_type_and_every_reason_has_a_reference_entry() -> None:
    assert [name for name in [*EventType, *Gone] if f"| `{name}` | " not in reference("events")] == []


def test_every_diagram_is_in_the_reference() -> None:
    drawn = {block.body.rstrip("\n") for block in Page(ROOT / "docs" / "reference" / "diagrams.md").blocks()}
    assert drawn == {item["mermaid"] for item in diagrams()}


# What has no words, or is gone, stops the generator.


@pytest.mark.parametrize(
    ("table", "page", "known"),
    [
        ("EVENT_DATA", "events", "task_created"),
        ("TOP_KEYS", "settings", "roots"),
        ("RESTART_KEYS", "settings", "enabled"),
    ],
)
def test_the_reference_generator_rejects_missing_and_stale_entries(
    generate: ModuleType, monkeypatch: pytest.MonkeyPatch, table: str, page: str, known: str
) -> None:
    write = getattr(generate, page)
    with monkeypatch.context() as without:
        without.delitem(getattr(generate, table), known)
        with pytest.raises(generate.Undocumented, match=known):
            write()
    with monkeypatch.context() as beyond:
        beyond.setitem(getattr(generate, table), "long_gone", "words")
        with pytest.raises(generate.Undocumented, match="long_gone"):
            write()
    write()


def test_the_reference_generator_rejects_a_tool_whose_result_has_no_type(generate: ModuleType) -> None:
    with pytest.raises(generate.Undocumented, match="add_server"):
        generate._tool(replace(TOOLS[0], result=JsonObject))


def test_the_reference_generator_rejects_a_state_diagram_with_unknown_states(
    generate: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "MACHINES", generate.MACHINES[1:])
    with pytest.raises(generate.Undocumented, match="proxy_task_states"):
        generate.drawings()


def test_the_reference_generator_rejects_a_value_without_a_docstring(
    generate: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    undocumented = "class EventType(StrEnum):\n    NOTIFICATION = 'notification'\n"
    monkeypatch.setattr(generate.inspect, "getsource", lambda _: undocumented)
    with pytest.raises(generate.Undocumented, match="notification"):
        generate.events()


# The documented keys of events are their actual keys.


async def let_servers_come_and_go(scene: Scene) -> None:
    one, child = scene.backends["one"], scene.backends["child"]
    await scene.value("reconnect_server", name="one")
    one.answers["ping"] = broken_line
    for _ in range(3):
        await scene.clock.advance(120)
    one.answers["ping"] = lambda _: {}
    await scene.clock.advance(120)
    for backend in (one, child):
        backend.link.break_off("it fell over")
        await scene.clock.advance(2)
    child.refuses = LinkError(LinkFailure.CLOSED, "it does not start")
    child.link.break_off("it fell over again")
    await scene.clock.advance(600)
    child.refuses = None
    await scene.value("reconnect_server", name="child")
    await scene.value("remove_server", name="child")


def broken_line(_: JsonObject) -> JsonObject:
    raise LinkError(LinkFailure.UNREACHABLE, "no answer")


async def test_events_contain_exactly_the_keys_in_the_reference(generate: ModuleType) -> None:
    async with a_scene(one=ScriptedBackend(), child=ScriptedBackend(is_process=True)) as scene:
        await let_everything_happen(scene)
        seen = take(scene.session.activity, after="from the beginning").events
        await let_servers_come_and_go(scene)
        seen += take(scene.session.activity, after=seen[-1].event_id).events
    assert set(EventType) - {event.type for event in seen} == NOT_SEEN_BY_ONE_SESSION
    for event in seen:
        named = generate.EVENT_DATA[event.type]
        assert {key for key in named if not key.endswith("?")} <= set(event.data) <= {key.rstrip("?") for key in named}


async def let_everything_happen(scene: Scene) -> None:
    """One session, every event that it can have by itself."""
    backend = scene.backends["one"]
    listener = backend.link.listener
    listener.handle_notification("notifications/tools/list_changed", {}, None)
    for answer in ("reply", "refuse", "cancel", "expire"):
        call = scene.start("execute_tool", server="one", tool="slow", timeout_ms=0, task_ttl_ms=1000)
        asked = await backend.next_asked()
        await scene.clock.advance(0)
        task_id = (await call)["structuredContent"]["proxy_task"]["task_id"]
        match answer:
            case "reply":
                asked.reply(content=[])
            case "refuse":
                asked.refuse(-32000, "no")
            case "cancel":
                await scene.call("cancel_task", task_id=task_id)
            case "expire":
                await scene.clock.advance(2)
    questions = [
        listener.handle_request(method, FORM, None) for method in ("elicitation/create", "sampling/createMessage")
    ]
    answers = asyncio.gather(*questions, return_exceptions=True)
    await scene.clock.advance(scene.session.limits.question_seconds + 1)
    await answers
    await scene.call("set_timer", duration_ms=1, message="once")
    await scene.call("set_timer", duration_ms=1000, message="again", interval=True)
    await scene.clock.advance(2)
    backend.link.break_off("the line was cut")
    await scene.clock.advance(0)
