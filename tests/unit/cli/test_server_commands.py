"""The commands that use servers, with scripted replies of emceepee."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from emceepee.cli.main import main
from emceepee.cli.use.tool_caller import OnProgress, ToolCaller
from emceepee.cli.watch import logs_command, top_command
from emceepee.cli.watch.console_feed import FeedFrame, FeedLost
from emceepee.paths import CONFIG_VARIABLE, STATE_VARIABLE

Json = dict[str, Any]
TASK = {"proxy_task": {"task_id": "T", "server": "one"}}
QUESTION = {"requestId": "Q", "server": "one", "mode": "form", "message": "Well?", "requestedSchema": {}}


def own(**value: Any) -> Json:
    return {"content": [], "structuredContent": value}


class Scripted:
    """Answers each tool with its next scripted reply, and repeats the last one."""

    def __init__(self, **answers: list[Json]) -> None:
        self.answers, self.asked = answers, list[tuple[str, Json]]()

    async def ask(self, params: Json, on_progress: OnProgress) -> Json:
        name = params["name"]
        self.asked.append((name, params["arguments"]))
        on_progress({"progress": 1, "total": 2})
        said = self.answers[name]
        return said.pop(0) if len(said) > 1 else said[0]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, Scripted]]:
    for variable in (STATE_VARIABLE, CONFIG_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    config = tmp_path / "config.json"
    config.write_text('{"mcpServers": {"one": {"command": "one"}}}')

    def run(*words: str, **answers: list[Json]) -> tuple[int, Scripted]:
        scripted = Scripted(**{"list_tools": [own(tools=[])], "get_server_status": [own()]} | answers)

        @asynccontextmanager
        async def here(config: object) -> AsyncIterator[ToolCaller]:
            yield ToolCaller(scripted)

        monkeypatch.setattr(ToolCaller, "here", here)
        return main([*words, "--config", str(config)]), scripted

    return run


Play = Callable[..., tuple[int, Scripted]]


def test_the_call_command_answers_questions_and_waits_for_its_task(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    working, done = own(task={"status": "working", "progress": {"progress": 1}}), own(task={"status": "completed"})
    code, scripted = play(
        *("call", "one", "ask"),
        execute_tool=[own(**TASK)],
        get_task=[working, working, done],
        get_elicitations=[own(requests=[QUESTION]), own(requests=[])],
        get_sampling_requests=[own(requests=[{"requestId": "S", "server": "one"}]), own(requests=[])],
        respond_to_elicitation=[own()],
        cancel_sampling_request=[own()],
        await_activity=[own()],
        get_task_result=[{"content": [{"type": "text", "text": "done"}]}],
    )
    assert (code, capsys.readouterr().out) == (0, "done\n")
    assert ("respond_to_elicitation", {"request_id": "Q", "action": "cancel"}) in scripted.asked
    assert ("cancel_sampling_request", {"request_id": "S", "reason": "no user can answer"}) in scripted.asked


def test_the_call_command_cancels_a_call_after_the_timeout(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    nothing = [own(requests=[])]
    code, scripted = play(
        *("call", "one", "dig", "--timeout", "2"),
        execute_tool=[own(**TASK)],
        get_task=[own(task={"status": "working"})],
        get_elicitations=nothing,
        get_sampling_requests=nothing,
        cancel_task=[own()],
    )
    assert code == 1
    assert "it took longer than 2 s" in capsys.readouterr().err
    assert scripted.asked[1] == (
        "execute_tool",
        {"server": "one", "tool": "dig", "args": {}, "timeout_ms": 2000, "task_ttl_ms": 2000},
    )


def test_the_call_command_names_non_text_content_with_its_size(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = [
        {"type": "image", "mimeType": "image/png", "data": "AAAA"},
        {"type": "resource_link", "name": "log", "uri": "file:///log"},
        {"type": "resource", "resource": {"uri": "x:y", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "x:z", "blob": "AAAA"}},
        {"type": "text", "text": "red \x1b[31m"},
        {"type": "new"},
    ]
    assert play("call", "one", "show", execute_tool=[{"content": blocks}])[0] == 0
    assert capsys.readouterr().out.splitlines() == [
        "[image, image/png, 3 bytes; --json has it]",
        "[log: file:///log]",
        "inside",
        "[x:z, binary, 3 bytes]",
        "red \N{REPLACEMENT CHARACTER}[31m",
        '[new: {"type": "new"}]',
    ]
    assert play("call", "one", "show", execute_tool=[own(sum=1)])[0] == 0
    assert json.loads(capsys.readouterr().out) == {"sum": 1}


def test_the_tools_command_lists_all_pages_and_reports_failed_servers(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    first = own(tools=[{"server": "one", "name": "a", "description": "First."}], nextCursor="2")
    last = own(tools=[{"server": "two", "name": "b"}], errors=[{"server": "three", "message": "gone"}])
    assert play("tools", list_tools=[first, last])[0] == 1
    captured = capsys.readouterr()
    assert captured.out == "one\n  a  First.\ntwo\n  b\n"
    assert "three: gone" in captured.err
    assert "emceepee doctor" in captured.err


def test_resources_prompts_and_search_results_are_printed(play: Play, capsys: pytest.CaptureFixture[str]) -> None:
    contents = [{"uri": "x:y", "text": "words"}]
    assert play("read", "one", "x:y", read_resource=[own(contents=contents)])[0] == 0
    assert play("read", "one", list_resources=[own(resources=[])])[0] == 0
    message = {"role": "user", "content": {"type": "text", "text": "hello"}}
    assert play("prompt", "one", "p", "a=1", get_prompt=[own(messages=[message])])[0] == 0
    assert play("prompt", "one", list_prompts=[own(prompts=[{"server": "one", "name": "p"}])])[0] == 0
    found = own(results=[{"signature": "one.a()", "type": "tool"}], note="And more.")
    assert play("search", "a", "b", "--type", "all", codemode_search=[found])[0] == 0
    assert capsys.readouterr().out.splitlines() == [
        *("words", "one offers no resources.", "user: hello", "one", "  p"),
        *("tool: one.a()", "And more."),
    ]
    assert play("search", "a", codemode_search=[own(results=[], note="Nothing fits.")])[0] == 1
    assert play("prompt", "one", "p", "a", get_prompt=[own()])[0] == 2


LINES = [
    {"server": "one", "timestamp": "2026-01-01T10:00:00.000Z", "level": "info", "source": "stderr", "data": "hello"},
    {
        "server": "two",
        "timestamp": "2026-01-01T09:00:00.000Z",
        "level": "error",
        "source": "protocol",
        "data": {"a": 1},
    },
]
FEED = [
    FeedFrame("hello", {"version": "1", "principal": "ada", "now": 0}),
    FeedFrame(
        "session", {"id": "S", "servers": [{"name": "one"}], "tasks": [{"status": "working", "toolName": "dig"}]}
    ),
    FeedFrame(
        "requests", {"rows": [{"id": "1", "name": "[bold]dig", "startedAt": 0.0, "endedAt": 5.0, "status": "success"}]}
    ),
    FeedFrame("logs", {"logs": LINES}),
    FeedFrame("ready", {}),
]


def test_the_logs_command_sorts_lines_by_time_and_filters_by_server(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logs_command, "read_feed", lambda *_: iter(FEED))
    assert main(["logs"]) == 0
    assert capsys.readouterr().out == '09:00:00.000 two error {"a": 1}\n10:00:00.000 one stderr info hello\n'
    assert main(["logs", "--level", "warning", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == LINES[1]
    assert main(["logs", "three"]) == 0
    assert 'no session has a server "three" now; there are one' in capsys.readouterr().err
    assert main(["logs", "-f"]) == 1  # the feed ended


def test_the_top_command_shows_names_unchanged_and_reports_errors(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(top_command, "read_feed", lambda *_: iter(FEED))
    assert main(["top", "--once"]) == 0
    assert "[bold]dig" in capsys.readouterr().out

    def fail(*_: object) -> None:
        raise FeedLost("there is no emceepee")

    monkeypatch.setattr(top_command, "read_feed", fail)
    assert main(["top"]) == 1
    assert capsys.readouterr().err == "emceepee: there is no emceepee\n"
