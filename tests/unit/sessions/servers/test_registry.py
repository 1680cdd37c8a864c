import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from emceepee.backends.spec import BackendSpec, HttpTarget, Provenance
from emceepee.errors import InvalidArguments, NotAllowed, UnknownBackend
from emceepee.sessions.servers.registry import BeingChanged, ServerRegistry
from emceepee.sessions.servers.server_changes import ServerChanges
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import NoKey, ServerConfiguration, StoreUnavailable
from support.fakes.clock import settle
from support.sessions.scene import scripted_spec


class Watching:
    """A session as the registry sees it."""

    def __init__(self, *, lets_go: bool = True) -> None:
        self.added: list[str] = []
        self.removed: list[str] = []
        self.configured: list[str] = []
        self.disabled_changes = 0
        self.may_let_go = asyncio.Event()
        if lets_go:
            self.may_let_go.set()

    def on_server_added(self, spec: BackendSpec) -> None:
        self.added.append(spec.name)

    async def on_server_removed(self, name: str) -> None:
        await self.may_let_go.wait()
        self.removed.append(name)

    async def on_server_configured(self, spec: BackendSpec) -> None:
        self.configured.append(spec.name)

    def on_disabled_changed(self) -> None:
        self.disabled_changes += 1


def a_registry(*operators: str, fixed: bool = False) -> ServerRegistry:
    return ServerRegistry([scripted_spec(name) for name in operators], operators_are_fixed=fixed)


async def test_a_session_finds_the_servers_of_the_operator_and_of_its_principal() -> None:
    registry, first = a_registry("theirs"), Watching()
    assert list(registry.join("ann", first)) == ["theirs"]
    registry.add("ann", scripted_spec("mine"), by=first)
    assert list(registry.join("ann", Watching())) == ["theirs", "mine"]
    assert list(registry.join("bob", Watching())) == ["theirs"]


async def test_an_added_server_reaches_other_sessions_of_its_principal_only() -> None:
    registry, adder, other, stranger = a_registry(), Watching(), Watching(), Watching()
    for principal, watcher in (("ann", adder), ("ann", other), ("bob", stranger)):
        registry.join(principal, watcher)
    registry.add("ann", scripted_spec("new"), by=adder)
    assert (adder.added, other.added, stranger.added) == ([], ["new"], [])


async def test_a_session_that_left_the_registry_receives_no_more_changes() -> None:
    registry, adder, gone = a_registry(), Watching(), Watching()
    registry.join("ann", adder)
    registry.join("ann", gone)
    registry.leave("ann", gone)
    registry.leave("ann", gone)
    registry.add("ann", scripted_spec("new"), by=adder)
    await registry.remove("ann", "new")
    assert (gone.added, gone.removed) == ([], [])


async def test_an_added_server_outlives_the_sessions_of_its_principal() -> None:
    registry, first = a_registry(), Watching()
    registry.join("ann", first)
    spec = BackendSpec(name="new", target=HttpTarget(url="https://h", headers={"a": "b"}), timeout=1.5)
    registry.add("ann", spec, by=first)
    registry.leave("ann", first)
    assert registry.join("ann", Watching()) == {"new": spec}


@pytest.mark.parametrize("name", ["theirs", "mine"])
async def test_a_server_name_in_use_cannot_be_reserved(name: str) -> None:
    registry, watcher = a_registry("theirs"), Watching()
    registry.join("ann", watcher)
    registry.add("ann", scripted_spec("mine"), by=watcher)
    with (
        pytest.raises(InvalidArguments, match=f'The name "{name}" is in use'),
        registry.reserve_name("ann", scripted_spec(name)),
    ):
        pytest.fail("it was reserved")


async def test_a_server_name_is_reserved_while_its_server_is_tried_and_free_again_if_that_fails() -> None:
    registry = a_registry()
    with suppress(ConnectionError), registry.reserve_name("ann", scripted_spec("x")):
        with pytest.raises(InvalidArguments), registry.reserve_name("ann", scripted_spec("x")):
            pytest.fail("it was reserved twice")
        with registry.reserve_name("bob", scripted_spec("x")):
            raise ConnectionError
    with registry.reserve_name("ann", scripted_spec("x")), registry.reserve_name("bob", scripted_spec("x")):
        pass


async def test_a_second_add_of_the_same_server_shares_the_outcome_of_the_first() -> None:
    registry, spec = a_registry(), scripted_spec("x")
    other = BackendSpec(name="x", target=HttpTarget(url="http://other.test"))
    with registry.reserve_name("ann", spec):
        trial = registry.trials.find_same("ann", scripted_spec("x"))
        assert trial is not None
        assert (registry.trials.find_same("bob", spec), registry.trials.find_same("ann", other)) == (None, None)
    assert (trial.outcome.result(), registry.trials.find_same("ann", spec)) == (None, None)
    for error in (InvalidArguments("no"), ConnectionError("gone")):
        with suppress(InvalidArguments, ConnectionError), registry.reserve_name("ann", spec):
            trial = registry.trials.find_same("ann", spec)
            raise error
        assert trial is not None
        assert trial.outcome.cancelled() == isinstance(error, ConnectionError)


async def test_removing_a_server_returns_when_every_session_has_released_it() -> None:
    registry, quick, slow = a_registry("x"), Watching(), Watching(lets_go=False)
    registry.join("ann", quick)
    registry.join("ann", slow)
    removing = asyncio.create_task(registry.remove("ann", "x"))
    await settle()
    assert quick.removed == ["x"]
    assert not removing.done()
    slow.may_let_go.set()
    async with asyncio.timeout(5):
        await removing
    assert slow.removed == ["x"]


async def test_a_removed_server_is_absent_from_new_sessions_and_its_name_is_free() -> None:
    registry, watcher = a_registry("theirs"), Watching()
    registry.join("ann", watcher)
    registry.add("ann", scripted_spec("mine"), by=watcher)
    for name in ("theirs", "mine"):
        await registry.remove("ann", name)
        with registry.reserve_name("ann", scripted_spec(name)):
            pass
    assert registry.join("ann", Watching()) == {}


async def test_a_principal_cannot_remove_a_server_that_another_principal_added() -> None:
    registry, watcher = a_registry(), Watching()
    registry.join("ann", watcher)
    registry.join("bob", Watching())
    registry.add("ann", scripted_spec("hers"), by=watcher)
    with pytest.raises(UnknownBackend, match='No server is called "hers"'):
        await registry.remove("bob", "hers")
    assert watcher.removed == []


async def test_the_servers_of_the_operator_can_be_fixed() -> None:
    registry, watcher = a_registry("theirs", fixed=True), Watching()
    registry.join("ann", watcher)
    with pytest.raises(NotAllowed, match="is the operator's"):
        await registry.remove("ann", "theirs")
    assert watcher.removed == []
    assert list(registry.join("ann", Watching())) == ["theirs"]


async def test_remote_callers_cannot_remove_servers_of_the_operator() -> None:
    registry, watcher = a_registry("theirs"), Watching()
    registry.join("ann", watcher)
    registry.add("ann", scripted_spec("hers"), by=Watching())
    with pytest.raises(NotAllowed, match="is the operator's"):
        await registry.remove("ann", "theirs", is_remote=True)
    await registry.remove("ann", "hers", is_remote=True)
    await registry.remove("ann", "theirs")
    assert watcher.removed == ["hers", "theirs"]


async def test_with_several_replicas_servers_of_the_operator_are_removed_only_in_the_file() -> None:
    others = ["replica"]
    registry, watcher = ServerRegistry([scripted_spec("theirs")], has_replicas=lambda: bool(others)), Watching()
    registry.join("ann", watcher)
    with pytest.raises(NotAllowed, match="emceepee servers remove"):
        await registry.remove("ann", "theirs")
    assert watcher.removed == []
    others.clear()
    await registry.remove("ann", "theirs")
    assert watcher.removed == ["theirs"]


async def test_removing_an_unknown_server_fails_with_the_closest_name() -> None:
    registry = a_registry("github")
    registry.join("ann", Watching())
    with pytest.raises(UnknownBackend, match="Did you mean github"):
        await registry.remove("ann", "gihub")


ADDED = Provenance("drawing 2.1", datetime(2026, 11, 18, 20, 33, tzinfo=UTC))


async def test_an_add_with_a_name_in_use_fails_with_the_owner_and_age_of_the_server() -> None:
    registry = a_registry("theirs")
    registry.add("ann", replace(scripted_spec("mine"), added=ADDED))
    with pytest.raises(InvalidArguments) as refused, registry.reserve_name("ann", scripted_spec("mine")):
        pass
    words = str(refused.value)
    assert '"drawing 2.1" added it at 2026-11-18T20:33:00.000Z' in words
    assert 'Choose another name, such as "mine-2", or call remove_server first' in words
    assert "another session has the same names" in words
    assert refused.value.details == {"server": "mine", "freeName": "mine-2"}


async def test_the_error_about_a_name_in_use_contains_only_known_facts() -> None:
    registry = a_registry("theirs")
    registry.add("ann", scripted_spec("nobody knows"))
    registry.add("ann", scripted_spec("nobody knows-2"))
    registry.add("ann", replace(scripted_spec("off"), added=Provenance(None, ADDED.at)))
    await registry.disable("ann", "off")
    registry.add("ann", scripted_spec("x" * 100))
    said = {
        "theirs": "in use by a server with another configuration in the operator's file. All sessions",
        "nobody knows": "in use by a server with another configuration. All sessions",
        "off": "a client added it at 2026-11-18T20:33:00.000Z, and it is disabled. All sessions",
        "x" * 100: f'such as "{"x" * 90}-2"',
    }
    for name, words in said.items():
        with pytest.raises(InvalidArguments) as refused, registry.reserve_name("ann", scripted_spec(name)):
            pass
        assert words in str(refused.value)
    with (
        registry.reserve_name("ann", scripted_spec("now")),
        pytest.raises(InvalidArguments, match="that another session is adding"),
        registry.reserve_name("ann", scripted_spec("now")),
    ):
        pass


async def test_another_process_knows_who_added_a_server() -> None:
    store = MemoryStore(is_durable=True)
    await ServerRegistry([], store=store).save("ann", replace(scripted_spec("mine"), added=ADDED))
    registry = ServerRegistry([], store=store)
    await registry.load("ann")
    assert registry.find_added("ann", "mine").added == ADDED


def test_two_servers_that_differ_only_in_who_added_them_are_equal() -> None:
    assert replace(scripted_spec("mine"), added=ADDED) == scripted_spec("mine")


async def test_a_server_with_a_secret_is_rejected_if_the_store_cannot_encrypt_it() -> None:
    store = StoreWithoutKey(is_durable=True)
    registry = ServerRegistry([], store=store)
    with pytest.raises(NotAllowed, match="the operator has to set a key"):
        await registry.save("ann", scripted_spec("secret"))
    await registry.reload()
    assert store.asked == 1


async def test_a_registry_that_failed_to_save_a_server_retries_on_reload() -> None:
    store = FullStore(is_durable=True)
    registry = ServerRegistry([], store=store)
    assert not registry.has_any_unsaved
    await registry.save("ann", scripted_spec("new"))
    assert (registry.has_any_unsaved, await store.servers_of("ann")) == (True, [])
    store.is_full = False
    await registry.reload()
    assert not registry.has_any_unsaved
    assert [server.name for server in await store.servers_of("ann")] == ["new"]


class FullStore(MemoryStore):
    is_full = True

    async def add_server(self, server: ServerConfiguration) -> None:
        if self.is_full:
            raise StoreUnavailable("no room")
        await super().add_server(server)


class StoreWithoutKey(MemoryStore):
    asked = 0

    async def add_server(self, server: ServerConfiguration) -> None:
        self.asked += 1
        raise NoKey("the operator has to set a key")


# Changes of the operator's configuration.


async def test_configuration_changes_reach_the_sessions_of_every_principal() -> None:
    registry, ann, bob = a_registry("old", "same", "other"), Watching(), Watching()
    registry.join("ann", ann)
    registry.join("bob", bob)
    changed = replace(scripted_spec("other"), timeout=1.0)
    await registry.apply(ServerChanges(added=(scripted_spec("new"),), removed=("old",), changed=(changed,)))
    for watcher in (ann, bob):
        assert (watcher.added, watcher.removed, watcher.configured) == ([], ["old"], ["other", "new"])
    assert list(registry.join("cyd", Watching())) == ["same", "other", "new"]


async def test_a_server_of_a_principal_outlives_the_removal_of_a_configured_one_with_the_same_name() -> None:
    registry, ann, bob = a_registry(), Watching(), Watching()
    registry.join("ann", ann)
    registry.join("bob", bob)
    registry.add("ann", scripted_spec("one"), by=ann)
    await registry.apply(ServerChanges(added=(replace(scripted_spec("one"), timeout=9.0),)))
    assert (ann.configured, bob.configured) == ([], ["one"])
    await registry.apply(ServerChanges(removed=("one",)))
    assert (ann.removed, bob.removed) == ([], ["one"])


async def test_a_configuration_change_waits_for_a_server_that_is_being_added_under_the_same_name() -> None:
    registry, ann = a_registry(), Watching()
    registry.join("ann", ann)
    with registry.reserve_name("ann", scripted_spec("one")):
        applying = asyncio.ensure_future(registry.apply(ServerChanges(added=(scripted_spec("one"),))))
        await settle()
        assert not applying.done()
        registry.add("ann", scripted_spec("one"), by=ann)
    await asyncio.wait_for(applying, 5)
    assert ann.configured == []


async def test_a_changed_description_does_not_restore_a_removed_server() -> None:
    registry, ann = a_registry("one"), Watching()
    registry.join("ann", ann)
    await registry.remove("ann", "one")
    await registry.apply(ServerChanges(reworded=(replace(scripted_spec("one"), description="the first"),)))
    assert (ann.configured, list(registry.join("bob", Watching()))) == ([], [])


@pytest.mark.parametrize(
    ("fixed", "is_remote", "is_told"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_only_local_callers_of_the_operator_see_configuration_errors(
    fixed: bool, is_remote: bool, is_told: bool
) -> None:
    registry = a_registry(fixed=fixed)
    assert registry.problem_for(is_remote=is_remote) is None
    registry.problem = "servers.json: not valid JSON"
    assert ("servers.json" in (registry.problem_for(is_remote=is_remote) or "")) == is_told
    assert registry.problem_for(is_remote=is_remote)


async def test_a_disabled_server_leaves_all_sessions_and_is_restored_unchanged() -> None:
    registry, one, other = a_registry(), Watching(), Watching()
    for watcher in (one, other):
        registry.join("ann", watcher)
    registry.add("ann", scripted_spec("new"))
    await registry.disable("ann", "new")
    await registry.disable("ann", "new")
    assert (one.removed, other.removed, one.disabled_changes) == (["new"], ["new"], 1)
    assert list(registry.join("ann", Watching())) == []
    assert [spec.name for spec in registry.disabled_of("ann")] == ["new"]
    assert registry.disabled_of("bob") == []
    await registry.enable("ann", "new")
    await registry.enable("ann", "new")
    assert (one.added, other.added) == (["new", "new"], ["new", "new"])
    assert registry.disabled_of("ann") == []


async def test_the_name_of_a_disabled_server_is_reserved_until_it_is_removed() -> None:
    registry = a_registry()
    registry.join("ann", Watching())
    registry.add("ann", scripted_spec("new"))
    await registry.disable("ann", "new")
    with pytest.raises(InvalidArguments, match="in use"), registry.reserve_name("ann", scripted_spec("new")):
        pass
    await registry.remove("ann", "new")
    assert registry.disabled_of("ann") == []
    with registry.reserve_name("ann", scripted_spec("new")):
        pass


async def test_servers_of_the_operator_are_changed_only_in_their_file() -> None:
    registry = a_registry("theirs")
    assert registry.is_operators("ann", "theirs")
    for change in (registry.disable, registry.enable):
        with pytest.raises(NotAllowed, match="emceepee servers"):
            await change("ann", "theirs")
        with pytest.raises(UnknownBackend):
            await change("ann", "nobodys")
    with pytest.raises(NotAllowed), registry.reserve_name("ann", scripted_spec("theirs"), replaces=True):
        pass


async def test_changed_settings_reach_the_other_sessions_and_enable_the_server() -> None:
    registry, by, other = a_registry(), Watching(), Watching()
    for watcher in (by, other):
        registry.join("ann", watcher)
    registry.add("ann", scripted_spec("new"))
    await registry.disable("ann", "new")
    changed = replace(scripted_spec("new"), timeout=7.0)
    with registry.reserve_name("ann", changed, replaces=True):
        await registry.change("ann", changed, by=by)
    assert (by.configured, other.configured) == ([], ["new"])
    assert registry.join("ann", Watching()) == {"new": changed}


async def test_a_disabled_or_changed_server_reaches_the_next_process_and_running_ones() -> None:
    store = MemoryStore()
    first, second = ServerRegistry([], store=store), ServerRegistry([], store=store)
    spec = BackendSpec(name="kept", target=HttpTarget(url="https://one.example"))
    await first.load("ann")
    await first.save("ann", spec)
    first.add("ann", spec)
    await second.load("ann")
    watcher = Watching()
    second.join("ann", watcher)
    await first.disable("ann", "kept")
    await second.reload()
    assert (watcher.removed, watcher.disabled_changes) == (["kept"], 1)
    third = ServerRegistry([], store=store)
    await third.load("ann")
    assert (third.join("ann", Watching()), third.disabled_of("ann")) == ({}, [spec])
    changed = replace(spec, target=HttpTarget(url="https://two.example"))
    await first.save_change("ann", changed)
    await first.change("ann", changed)
    await second.reload()
    assert second.join("ann", Watching()) == {"kept": changed}
    assert second.disabled_of("ann") == []


async def test_servers_removed_while_a_reload_waits_for_others_stay_removed() -> None:
    store = MemoryStore()
    here, there = ServerRegistry([], store=store), ServerRegistry([], store=store)
    specs = [BackendSpec(name=name, target=HttpTarget(url="https://one.example")) for name in ("x", "y", "z")]
    for registry in (here, there):
        await registry.load("ann")
    for spec in specs:
        await there.save("ann", spec)
    await here.reload()
    for name in ("x", "y"):
        await store.remove_server("ann", name)
    slow = Watching(lets_go=False)
    here.join("ann", slow)
    reloading = asyncio.create_task(here.reload())
    await settle()
    with suppress(UnknownBackend):
        await here.remove("ann", "y")
    removing = asyncio.create_task(here.remove("ann", "z"))
    await settle()
    slow.may_let_go.set()
    await reloading
    await removing
    assert (here.join("ann", Watching()), slow.added) == ({}, [])


# Several processes.


async def two_processes(store: MemoryStore, *specs: BackendSpec) -> tuple[ServerRegistry, ServerRegistry, Watching]:
    """Return two processes and a session at the second; ann added these servers at the first."""
    first, second = ServerRegistry([], store=store), ServerRegistry([], store=store)
    await first.load("ann")
    for spec in specs:
        await first.save("ann", spec)
        first.add("ann", spec)
    await second.load("ann")
    session = Watching()
    second.join("ann", session)
    return first, second, session


async def change(registry: ServerRegistry, spec: BackendSpec) -> None:
    with registry.reserve_name("ann", spec, replaces=True):
        await registry.save_change("ann", spec)
        await registry.change("ann", spec)


ONE = BackendSpec(name="one", target=HttpTarget(url="https://one.example"))
OTHERS = [
    replace(ONE, target=HttpTarget(url="https://two.example")),
    replace(ONE, timeout=7.0),
    replace(ONE, description="Other words"),
]


@pytest.mark.parametrize("other", OTHERS)
async def test_a_server_changed_in_one_process_is_changed_and_not_removed_in_the_other(other: BackendSpec) -> None:
    first, second, session = await two_processes(MemoryStore(), ONE)
    await change(first, other)
    await second.reload()
    assert (session.configured, session.removed, session.added) == (["one"], [], [])
    [there] = second.join("ann", Watching()).values()
    assert (there, there.description) == (other, other.description)
    await second.reload()
    assert session.configured == ["one"], "once"


async def test_a_disabled_server_yields_to_a_configured_one_with_the_same_name_until_it_is_enabled() -> None:
    first, second, session = await two_processes(MemoryStore(), ONE)
    await second.apply(ServerChanges(added=(scripted_spec("one"),)))
    await first.disable("ann", "one")
    await second.reload()
    assert second.join("ann", Watching()) == {"one": scripted_spec("one")}
    await first.enable("ann", "one")
    await second.reload()
    assert second.join("ann", Watching()) == {"one": ONE}
    assert (session.configured, session.added, session.removed) == (["one", "one"], [], [])


async def test_a_process_catches_up_with_the_changes_of_others_before_it_changes_a_server() -> None:
    first, second, session = await two_processes(MemoryStore())
    await first.save("ann", ONE)
    first.add("ann", ONE)
    with pytest.raises(UnknownBackend):
        second.find_added("ann", "one")
    await second.catch_up("ann")
    assert (second.find_added("ann", "one"), session.added) == (ONE, ["one"])
    await second.catch_up("bob")  # bob has no session here


async def test_a_reload_that_races_with_a_local_change_reads_the_store_again() -> None:
    store = SlowStore()
    _, second, session = await two_processes(store, ONE)
    store.may_read.clear()
    reloading = asyncio.ensure_future(second.reload())
    await settle()
    new = replace(ONE, name="new")
    with second.reserve_name("ann", new):
        await second.save("ann", new)
        second.add("ann", new)
    await second.remove("ann", "one")
    store.may_read.set()
    await asyncio.wait_for(reloading, 5)
    assert (session.added, session.removed) == (["new"], ["one"])
    assert second.join("ann", Watching()) == {"new": new}


class SlowStore(MemoryStore):
    """A store whose reads return the state at the time of the request."""

    def __init__(self) -> None:
        super().__init__(is_durable=True)
        self.may_read = asyncio.Event()
        self.may_read.set()

    async def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        stored = await super().servers_of(principal)
        await self.may_read.wait()
        return stored


@pytest.mark.parametrize("becomes", ["changed", "disabled", "removed"])
async def test_a_server_that_another_process_changes_during_a_failed_local_change_is_updated_afterward(
    becomes: str,
) -> None:
    first, second, session = await two_processes(MemoryStore(), ONE)
    with suppress(ConnectionError), second.reserve_name("ann", OTHERS[0], replaces=True):
        await {
            "changed": lambda: change(first, OTHERS[1]),
            "disabled": lambda: first.disable("ann", "one"),
            "removed": lambda: first.remove("ann", "one"),
        }[becomes]()
        with pytest.raises(BeingChanged):  # so that the caller retries
            await second.reload()
        assert (session.configured, session.removed, session.disabled_changes) == ([], [], 0)
        raise ConnectionError
    await second.reload()
    assert (bool(session.configured), bool(session.removed)) == (becomes == "changed", becomes != "changed")
    assert [spec.name for spec in second.disabled_of("ann")] == (["one"] if becomes == "disabled" else [])
