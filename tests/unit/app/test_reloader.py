import asyncio
import json
import logging
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from emceepee.app.reloader import SETTLE_SECONDS, Reloader, needing_restart
from emceepee.backends.spec import HttpTarget, UnusableTarget
from emceepee.config.file_reader import _TOP_KEYS, load, parse
from emceepee.config.secret_references import References
from emceepee.config.settings import Config
from emceepee.config.source import ConfigSource, stamp_of
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.state.limits import LIVE, Limits
from emceepee.surface import Surface
from emceepee.telemetry import logs
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.argument_limits import fit_tools
from support.fakes.clock import FakeClock
from support.sessions.operator_servers import operator_servers
from support.sessions.scene import scripted_spec
from support.waiting import eventually

URL = "http://one.test/mcp"


@dataclass
class Bench:
    """A configuration file and the reloader that follows it."""

    file: Path
    clock: FakeClock
    registry: ServerRegistry
    reloader: Reloader
    taken_over: list[Config]
    limits: Limits  # in use

    def write(self, **document: Any) -> None:
        new = self.file.with_name("new")
        new.write_text(json.dumps(document))
        new.replace(self.file)

    def servers(self) -> dict[str, str]:
        return {name: spec.target.label for name, spec in operator_servers(self.registry).items()}

    def targets(self) -> dict[str, type]:
        return {name: type(spec.target) for name, spec in operator_servers(self.registry).items()}

    async def look(self) -> None:
        """Make the reloader check the file, and advance the clock while it waits."""
        looking = asyncio.ensure_future(self.reloader.look())
        await eventually(lambda: looking.done() or self.clock.is_waited_for)
        if not looking.done():
            await self.clock.advance(SETTLE_SECONDS)
        await asyncio.wait_for(looking, 5)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"one": {"url": URL}}}))
    config, clock, taken_over = load(str(file)), FakeClock(), list[Config]()
    registry = ServerRegistry(config.servers)
    source = ConfigSource(file=file, read=lambda: load(str(file)), stamp=stamp_of(file))
    reloader = Reloader(source, config, registry, clock, taken_over.append)
    return Bench(file, clock, registry, reloader, taken_over, config.limits)


async def test_an_unchanged_configuration_file_is_not_read(bench: Bench) -> None:
    await bench.look()
    assert bench.taken_over == []


async def test_changed_servers_are_reloaded(bench: Bench) -> None:
    bench.write(mcpServers={"one": {"url": URL}, "two": {"url": "http://two.test/mcp"}})
    await bench.look()
    assert bench.servers() == {"one": URL, "two": "http://two.test/mcp"}
    bench.write(mcpServers={"two": {"url": "http://three.test/mcp"}})
    await bench.look()
    assert bench.servers() == {"two": "http://three.test/mcp"}
    assert [len(config.servers) for config in bench.taken_over] == [2, 1]


async def test_a_reload_waits_for_a_caller_that_adds_a_server_of_the_same_name(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_waiting, wait_for_names = asyncio.Event(), bench.registry.trials.wait_for_names

    async def wait(names: Collection[str]) -> None:
        is_waiting.set()
        await wait_for_names(names)

    monkeypatch.setattr(bench.registry.trials, "wait_for_names", wait)
    bench.write(mcpServers={"one": {"url": URL}, "two": {"url": "http://two.test/mcp"}})
    with bench.registry.reserve_name("ann", scripted_spec("two")):
        looking = asyncio.ensure_future(bench.look())
        await asyncio.wait_for(is_waiting.wait(), 5)
        assert (bench.taken_over, list(bench.servers())) == ([], ["one"])
    await asyncio.wait_for(looking, 5)
    assert (len(bench.taken_over), list(bench.servers())) == (1, ["one", "two"])


async def test_a_reload_removes_a_disabled_server_and_restores_an_enabled_one(bench: Bench) -> None:
    bench.write(mcpServers={"one": {"url": URL, "disabled": True}})
    await bench.look()
    assert bench.servers() == {}
    assert [spec.name for spec in bench.registry.disabled_operators_of("local")] == ["one"]
    bench.write(mcpServers={"one": {"url": URL, "disabled": False}})
    await bench.look()
    assert bench.servers() == {"one": URL}
    assert bench.registry.disabled_operators_of("local") == []


@pytest.mark.parametrize("text", ["", '{"mcpServers": {"o', "[]", '{"state": 1}', '{"mcpServers": []}', "[" * 100_000])
async def test_a_broken_file_changes_nothing_on_reload_and_is_reported(
    bench: Bench, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench.file.write_text(text)
    with caplog.at_level(logging.WARNING, logger="emceepee.config"):
        await bench.look()
    assert bench.servers() == {"one": URL}
    assert bench.registry.problem is not None
    assert str(bench.file) in bench.registry.problem
    assert [record.message for record in caplog.records] == ["config_not_reloaded"]
    bench.write(mcpServers={})
    await bench.look()
    assert bench.servers() == {}
    assert not bench.registry.problem


async def test_an_error_in_one_entry_disables_only_that_server_on_reload(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.write(mcpServers={"one": {"url": URL, "timeout_ms": "soon"}, "two": {"url": "http://two.test/mcp"}})
    with caplog.at_level(logging.WARNING, logger="emceepee.config"):
        await bench.look()
    assert bench.targets() == {"one": UnusableTarget, "two": HttpTarget}
    assert (bench.registry.problem, bench.reloader.problem) == (None, None)
    (record,) = caplog.records
    assert record.message == "config_mistake"
    assert vars(record)["fields"] == {
        "server": "one",
        "key": "mcpServers.one.timeout_ms",
        "error": 'expected a whole number, found "soon"',
        "instead": "the server is disabled",
    }
    bench.write(mcpServers={"one": {"url": URL}})
    await bench.look()
    assert bench.targets() == {"one": HttpTarget}


async def test_a_missing_secret_disables_its_server_until_its_file_exists(bench: Bench) -> None:
    bench.write(mcpServers={"one": {"url": URL, "headers": {"X": "${file:secret}"}}, "two": {"url": URL}})
    await bench.look()
    assert bench.targets() == {"one": UnusableTarget, "two": HttpTarget}
    await bench.look()
    assert len(bench.taken_over) == 1, "nothing is read while the file is missing"
    bench.file.with_name("secret").write_text("s3cret")
    await bench.look()
    assert bench.targets() == {"one": HttpTarget, "two": HttpTarget}


async def test_a_secret_that_is_being_replaced_disables_no_server(bench: Bench) -> None:
    secret = bench.file.with_name("secret")
    bench.write(mcpServers={"one": {"url": URL, "headers": {"X": "${file:secret}"}}})
    looking = asyncio.ensure_future(bench.reloader.look())
    await eventually(lambda: bench.clock.is_waited_for)
    secret.write_text("new")
    await bench.clock.advance(SETTLE_SECONDS)
    await asyncio.wait_for(looking, 5)
    assert bench.targets() == {"one": HttpTarget}
    assert len(bench.taken_over) == 1


async def test_a_setting_with_an_error_keeps_its_previous_value_and_callers_see_the_error(bench: Bench) -> None:
    bench.write(
        mcpServers={"one": {"url": URL}}, limits={"timers_per_session": 3, "connect_seconds": 7}, notices="blocks"
    )
    await bench.look()
    bench.write(
        mcpServers={"two": {"url": URL}}, limits={"timers_per_session": -1, "connect_seconds": 8}, notices="some"
    )
    await bench.look()
    assert bench.targets() == {"two": HttpTarget}
    assert (bench.limits.timers_per_session, bench.limits.connect_seconds) == (3, 8)
    assert bench.taken_over[-1].notices == "blocks"
    assert "limits.timers_per_session: expected a whole number" in (bench.registry.problem or "")
    assert "notices: expected one of auto, all, blocks" in (bench.registry.problem or "")
    assert bench.reloader.problem is None
    bench.write(mcpServers={"two": {"url": URL}}, limits=3)
    await bench.look()
    assert (bench.limits.timers_per_session, bench.limits.connect_seconds) == (3, 8)
    bench.write(mcpServers={"two": {"url": URL}})
    await bench.look()
    assert (bench.limits, bench.registry.problem) == (Limits(), None)


async def test_a_deleted_configuration_file_changes_nothing(bench: Bench) -> None:
    bench.file.unlink()
    await bench.look()
    assert bench.servers() == {"one": URL}
    assert "no such file" in (bench.registry.problem or "")


async def test_a_configuration_file_that_is_still_being_written_is_read_again(bench: Bench) -> None:
    bench.file.write_text('{"mcpServers": {"on')
    looking = asyncio.ensure_future(bench.reloader.look())
    await eventually(lambda: bench.clock.is_waited_for)
    bench.file.write_text(json.dumps({"mcpServers": {"whole": {"url": URL}}}))
    await bench.clock.advance(SETTLE_SECONDS)
    await asyncio.wait_for(looking, 5)
    assert (bench.servers(), bench.registry.problem) == ({"whole": URL}, None)


async def test_a_reload_changes_the_log_level_at_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    levels: list[str] = []
    monkeypatch.setattr(logs, "set_level", levels.append)
    bench.write(mcpServers={"one": {"url": URL}}, logLevel="debug")
    await bench.look()
    assert levels == ["debug"]


async def test_a_reload_warns_once_about_a_limit_of_an_earlier_version(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="emceepee.config"):
        for seconds in (7, 8):
            bench.write(limits={"list_pages": 5, "connect_seconds": seconds})
            await bench.look()
    (record,) = caplog.records
    assert record.message == "config_key_without_effect"
    assert vars(record)["fields"]["key"] == "limits.list_pages"
    assert "no longer has an effect" in vars(record)["fields"]["because"]


async def test_a_reload_logs_the_settings_that_require_a_restart(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.write(mcpServers={"one": {"url": URL}}, limits={"line_bytes": 99_999}, notices="blocks")
    with caplog.at_level(logging.WARNING, logger="emceepee.config"):
        await bench.look()
    (record,) = caplog.records
    assert (record.message, vars(record)["fields"]["keys"]) == ("config_needs_restart", ["limits.line_bytes"])


async def test_a_reload_updates_live_limits_for_every_user_of_the_limits(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.write(mcpServers={"one": {"url": URL}}, limits={"timers_per_session": 3, "line_bytes": 99_999})
    with caplog.at_level(logging.INFO, logger="emceepee.config"):
        await bench.look()
    assert (bench.limits.timers_per_session, bench.limits.line_bytes) == (3, Limits().line_bytes)
    assert vars(caplog.records[0])["fields"]["limits"] == ["timers_per_session"]
    bench.write(mcpServers={"one": {"url": URL}}, limits={"line_bytes": 99_999})
    await bench.look()
    assert bench.limits == Limits(), "what the file does not name any more is as it was"


def test_no_live_limit_appears_in_tool_descriptions() -> None:
    other = replace(Limits(), **{name: getattr(Limits(), name) + 1 for name in LIVE})
    assert [tool.listing(Surface.FULL) for tool in fit_tools(TOOLS, other)] == [
        tool.listing(Surface.FULL) for tool in fit_tools(TOOLS, Limits())
    ]


def test_only_settings_that_are_read_at_startup_require_a_restart() -> None:
    before = Config()
    assert (
        needing_restart(before, replace(before, notices="blocks", native_elicitation="never", log_level="warn")) == []
    )
    after = replace(before, limits=replace(Limits(), line_bytes=99_999), state="memory", roots=("file:///a",))
    assert needing_restart(before, after) == ["limits.line_bytes", "roots", "state"]


SERVER = {"url": "http://other.test/mcp"}
AT_ONCE: dict[str, Any] = {
    "servers": [{"name": "other", **SERVER}],
    "mcpServers": {"other": SERVER},
    "mcpClients": {"other": SERVER},
    "limits": {"timers_per_session": 3},
    "notices": "blocks",
    "nativeElicitation": "never",
    "logLevel": "warn",
}
AFTER_RESTART: dict[str, Any] = {
    "roots": ["/srv"],
    "surface": "lite",
    "searchVectors": "vectors.txt",
    "logFormat": "json",
    "state": "memory",
    "stateSync": "full",
    "secrets": "keyring",
}


def test_every_configuration_key_is_reloaded_or_requires_a_restart(tmp_path: Path) -> None:
    assert sorted([*AT_ONCE, *AFTER_RESTART]) == sorted(_TOP_KEYS)
    (tmp_path / "vectors.txt").touch()
    references = References(environment={}, folder=tmp_path)
    for key, value in (AT_ONCE | AFTER_RESTART).items():
        after = parse(json.dumps({key: value}), source="file", references=references)
        assert after != Config(), key
        assert needing_restart(Config(), after) == ([key] if key in AFTER_RESTART else [])
