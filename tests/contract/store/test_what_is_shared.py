"""Added servers and logins are visible to every process."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from emceepee.store.store import NameTaken, ServerConfiguration, Store, StoredLogin
from support.store.store_engines import Engine
from support.store.stored_sessions import HOUR, NOW, head, store_session


def server(
    name: str, *, principal: str = "alice", settings: bytes = b"{}", is_disabled: bool = False
) -> ServerConfiguration:
    return ServerConfiguration(principal=principal, name=name, settings=settings, is_disabled=is_disabled)


def login(digest: bytes, *, principal: str = "alice", hours: int = 1) -> StoredLogin:
    return StoredLogin(digest, principal, NOW + hours * HOUR)


async def test_added_servers_are_visible_to_every_process_in_the_order_of_addition(
    engine: Engine, store: Store, other: Store
) -> None:
    names = ["zebra", "ant", "mole"]
    for number, name in enumerate(names):
        await (store, other)[number % 2].add_server(server(name, settings=name.encode()))
    await store.add_server(server("ant", principal="bob"))
    expected = [server(name, settings=name.encode()) for name in names]
    assert [await each.servers_of("alice") for each in (store, other)] == [expected, expected]
    assert await other.servers_of("bob") == [server("ant", principal="bob")]
    assert await store.servers_of("carol") == []
    for each in (store, other):
        await engine.kill(each)
    assert await (await engine.open()).servers_of("alice") == expected


async def test_a_server_name_is_unique_per_principal(store: Store, other: Store) -> None:
    await store.add_server(server("ant", settings=b"first"))
    before = await other.shared_revision()
    with pytest.raises(NameTaken):
        await other.add_server(server("ant", settings=b"second"))
    assert await store.servers_of("alice") == [server("ant", settings=b"first")]
    assert await store.shared_revision() == before


async def test_a_server_is_replaced_in_its_place(store: Store) -> None:
    for name in ("one", "two", "three"):
        await store.add_server(server(name))
    changed = server("two", settings=b"new", is_disabled=True)
    await store.replace_server(changed)
    assert await store.servers_of("alice") == [server("one"), changed, server("three")]


async def test_replacing_an_unknown_server_fails(store: Store) -> None:
    before = await store.shared_revision()
    await store.replace_server(server("ant"))
    assert await store.servers_of("alice") == []
    assert await store.shared_revision() == before


async def test_a_removed_server_is_gone_and_a_new_one_of_its_name_comes_last(store: Store) -> None:
    for name in ("one", "two"):
        await store.add_server(server(name))
    assert await store.remove_server("alice", "one")
    before = await store.shared_revision()
    assert not await store.remove_server("alice", "one")
    assert not await store.remove_server("bob", "two")
    assert await store.shared_revision() == before
    await store.add_server(server("one"))
    assert [each.name for each in await store.servers_of("alice")] == ["two", "one"]


async def test_the_shared_revision_increases_for_all_processes_with_every_change(store: Store, other: Store) -> None:
    changes: list[Callable[[], Awaitable[object]]] = [
        lambda: store.add_server(server("ant")),
        lambda: other.replace_server(server("ant", is_disabled=True)),
        lambda: store.add_login(login(b"1")),
        lambda: other.end_login(b"1"),
        lambda: other.remove_server("alice", "ant"),
    ]
    last = await store.shared_revision()
    for make in changes:
        await make()
        now = await store.shared_revision()
        assert now > last
        assert await other.shared_revision() == now
        last = now


async def test_a_change_of_a_session_does_not_change_the_shared_revision(store: Store, other: Store) -> None:
    before = await store.shared_revision()
    await store_session(other, head("s1"), e="1")
    assert [await each.shared_revision() for each in (store, other)] == [before, before]


async def test_console_logins_are_stored_until_they_are_ended(engine: Engine, store: Store, other: Store) -> None:
    first, second = login(b"\x00\xff1"), login(b"2", principal="bob", hours=2)
    await store.add_login(first)
    await other.add_login(second)
    assert {each.digest: each for each in await other.logins()} == {first.digest: first, second.digest: second}
    assert await other.end_login(first.digest)
    assert not await store.end_login(first.digest)
    assert not await other.end_login(b"unknown")
    await engine.kill(store)
    assert await (await engine.open()).logins() == [second]


async def test_of_several_concurrent_logouts_one_succeeds(store: Store, other: Store) -> None:
    for number in range(20):
        await store.add_login(login(b"%d" % number))
        ended = await asyncio.gather(*(each.end_login(b"%d" % number) for each in (other, store, other, store)))
        assert sorted(ended) == [False, False, False, True]


async def test_a_console_login_with_the_same_secret_is_the_same_login(store: Store) -> None:
    await store.add_login(login(b"1"))
    await store.add_login(login(b"1", hours=3))
    assert await store.logins() == [login(b"1", hours=3)]


async def test_expired_console_logins_are_deleted_with_expired_sessions(store: Store) -> None:
    await store.add_login(login(b"1", hours=1))
    await store.add_login(login(b"2", hours=2))
    assert await store.forget_expired(NOW + HOUR, 10) == 0
    assert await store.logins() == [login(b"2", hours=2)]


async def test_an_announced_change_makes_every_process_reload_shared_data(store: Store, other: Store) -> None:
    before = await other.shared_revision()
    await store.announce_change()
    assert await other.shared_revision() > before
    assert await store.shared_revision() == await other.shared_revision()
