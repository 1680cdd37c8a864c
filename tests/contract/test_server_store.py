"""What every ServerStore promises."""

from collections.abc import Callable
from typing import Any

import pytest

from emceepee.store.memory import MemoryServers
from emceepee.store.protocols import ServerStore, StoredServer


@pytest.fixture(params=[MemoryServers])
def store(request: pytest.FixtureRequest) -> ServerStore:
    make: Callable[[], ServerStore] = request.param
    return make()


def a_server(name: str, principal: str = "ann", **entry: Any) -> StoredServer:
    return StoredServer(principal=principal, name=name, entry={"name": name, **entry})


async def test_servers_come_back_in_the_order_in_which_they_were_added(store: ServerStore) -> None:
    servers = [a_server(name, url=f"https://{name}", env={"ä": ""}) for name in ("z", "a", "m")]
    for server in servers:
        assert await store.add(server) is True
    assert await store.all("ann") == servers


async def test_a_name_that_is_taken_is_not_taken_again_and_nothing_changes(store: ServerStore) -> None:
    await store.add(a_server("x", url="https://first"))
    assert await store.add(a_server("x", url="https://second")) is False
    assert await store.all("ann") == [a_server("x", url="https://first")]


async def test_principals_have_their_own_names(store: ServerStore) -> None:
    assert await store.add(a_server("x")) is True
    assert await store.add(a_server("x", "bob")) is True
    assert await store.remove("ann", "x") is True
    assert (await store.all("ann"), await store.all("bob")) == ([], [a_server("x", "bob")])


async def test_a_server_is_removed_once_and_its_name_is_free_again(store: ServerStore) -> None:
    await store.add(a_server("x"))
    await store.add(a_server("y"))
    assert [await store.remove("ann", "x"), await store.remove("ann", "x")] == [True, False]
    assert await store.add(a_server("x")) is True
    assert [server.name for server in await store.all("ann")] == ["y", "x"]


async def test_nobody_has_servers_at_first(store: ServerStore) -> None:
    assert await store.all("ann") == []
    assert await store.remove("ann", "x") is False


async def test_names_that_could_be_confused_are_kept_apart(store: ServerStore) -> None:
    for principal, name in (("a", "b:c"), ("a:b", "c"), ("", "a:b:c"), ("a", "B:C")):
        assert await store.add(a_server(name, principal)) is True
    assert [server.name for server in await store.all("a")] == ["b:c", "B:C"]
