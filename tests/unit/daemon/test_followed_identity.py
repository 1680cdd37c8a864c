"""Which callers a daemon admits while its configuration file and the secrets in it change."""

import asyncio
import json
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from emceepee.app.reloader import SETTLE_SECONDS, Reloader
from emceepee.backends.spec import HttpTarget
from emceepee.cli.serve.config_digest import digest
from emceepee.config.file_reader import load
from emceepee.config.settings import Config
from emceepee.config.source import ConfigSource, stamp_of
from emceepee.daemon.daemon_socket import Identity
from emceepee.daemon.followed_identity import FollowedIdentity
from emceepee.daemon.greeting import DaemonHello
from emceepee.sessions.servers.registry import ServerRegistry
from support.fakes.clock import FakeClock
from support.sessions.operator_servers import operator_servers
from support.waiting import eventually

BOUND = 5.0


@dataclass
class Daemon:
    secret: Path
    file: Path
    registry: ServerRegistry
    identity: FollowedIdentity
    taken_over: list[Config]
    clock: FakeClock

    def hello(self, **flags: str) -> DaemonHello:
        """Return the greeting of a caller that sees the current files."""
        seen = digest({"config": str(self.file), **flags}, {"HOME": "/nowhere"}, Path("/"))
        return DaemonHello(version="1", configuration=seen, session="s", is_kept=False)

    async def refusal(self, hello: DaemonHello) -> str | None:
        return await asyncio.wait_for(self.identity.refusal(hello), BOUND)

    def tokens(self) -> dict[str, dict[str, str]]:
        targets = {name: spec.target for name, spec in operator_servers(self.registry).items()}
        return {name: target.headers for name, target in targets.items() if isinstance(target, HttpTarget)}


@pytest.fixture
def daemon(tmp_path: Path) -> Daemon:
    secret, file, taken_over = tmp_path / "token", tmp_path / "servers.json", list[Config]()
    secret.write_text("old")
    entry = {"url": "http://one.test/mcp", "headers": {"Authorization": "${file:token}"}}
    file.write_text(json.dumps({"mcpServers": {"one": entry, "two": {"url": "http://two.test/mcp"}}}))
    read_digest = partial(digest, {"config": str(file)}, {"HOME": "/nowhere"}, Path("/"))
    identity = FollowedIdentity(Identity(version="1", configuration=read_digest(), pid=7), read_digest)
    config = load(str(file))
    registry = ServerRegistry(config.servers)
    source = ConfigSource(file=file, read=lambda: load(str(file)), stamp=stamp_of(file))
    clock = FakeClock()
    identity.follow(source, Reloader(source, config, registry, clock, taken_over.append))
    return Daemon(secret, file, registry, identity, taken_over, clock)


async def test_a_changed_secret_applies_before_the_next_caller_is_admitted(daemon: Daemon) -> None:
    assert await daemon.refusal(daemon.hello()) is None
    assert daemon.taken_over == []
    before = operator_servers(daemon.registry)["two"]
    daemon.secret.write_text("new")
    assert await daemon.refusal(daemon.hello()) is None
    assert daemon.tokens() == {"one": {"Authorization": "new"}, "two": {}}
    assert operator_servers(daemon.registry)["two"] is before
    assert await daemon.refusal(daemon.hello()) is None
    assert len(daemon.taken_over) == 1


async def test_a_caller_is_notified_of_a_disabled_server_until_its_error_is_fixed(daemon: Daemon) -> None:
    daemon.secret.unlink()
    refusal = asyncio.ensure_future(daemon.refusal(daemon.hello()))
    await eventually(lambda: daemon.clock.is_waited_for)
    await daemon.clock.advance(SETTLE_SECONDS)
    assert await refusal is None
    assert daemon.identity.notice == (
        "the configuration of the daemon (process 7) has mistakes: mcpServers.one.headers.Authorization: there is no "
        f"file {daemon.secret}; write the secret to it, and make it private"
    )
    assert daemon.tokens() == {"two": {}}
    daemon.secret.write_text("new")
    assert await daemon.refusal(daemon.hello()) is None
    assert daemon.tokens()["one"] == {"Authorization": "new"}
    assert daemon.identity.notice is None


async def test_concurrent_callers_after_a_change_cause_one_reload(daemon: Daemon) -> None:
    daemon.secret.write_text("new")
    assert await asyncio.gather(*(daemon.refusal(daemon.hello()) for _ in range(3))) == [None] * 3
    assert (len(daemon.taken_over), daemon.tokens()["one"]) == (1, {"Authorization": "new"})


async def test_callers_with_other_flags_or_another_version_cause_no_reload(daemon: Daemon) -> None:
    assert "has another configuration" in (await daemon.refusal(daemon.hello(surface="lite")) or "")
    daemon.secret.write_text("new")
    assert "is emceepee 1, and this is 2" in (await daemon.refusal(replace(daemon.hello(), version="2")) or "")
    assert daemon.taken_over == []


async def test_a_caller_with_the_old_secret_is_rejected_after_the_change(daemon: Daemon) -> None:
    late = daemon.hello()
    daemon.secret.write_text("new")
    assert await daemon.refusal(daemon.hello()) is None
    assert "has another configuration" in (await daemon.refusal(late) or "")
