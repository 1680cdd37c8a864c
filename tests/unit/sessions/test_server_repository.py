from dataclasses import replace

from emceepee.backends.spec import BackendSpec, HttpTarget, RestartPolicy, StdioTarget
from emceepee.sessions.server_repository import StoredServers, entry_of
from emceepee.state.tool_filter import ToolFilter
from emceepee.store.memory import MemoryServers

FULL = BackendSpec(
    name="full",
    target=StdioTarget(command="x", args=("a",), env={"A": "b"}, cwd="/", restart=RestartPolicy(max_attempts=1)),
    tools=ToolFilter(("a*",), ("ab",)),
    timeout=2.5,
    mode="legacy",
)
PLAIN = BackendSpec(name="plain", target=HttpTarget(url="https://h/mcp", headers={"A": "b"}, kind="sse"))


async def test_specifications_come_back_from_the_store_as_they_went_in() -> None:
    repository = StoredServers(MemoryServers())
    assert [await repository.add("ann", spec) for spec in (FULL, PLAIN)] == [True, True]
    assert await repository.all("ann") == [FULL, PLAIN]
    assert await repository.all("bob") == []


async def test_what_must_stay_out_of_private_networks_is_known_as_such_again() -> None:
    repository = StoredServers(MemoryServers())
    await repository.add("ann", replace(PLAIN, target=HttpTarget(url="https://h/mcp", is_public=True)))
    await repository.add("ann", FULL)
    targets = [spec.target for spec in await repository.all("ann")]
    assert [isinstance(target, HttpTarget) and target.is_public for target in targets] == [True, False]


async def test_a_name_is_taken_once_and_removed_once() -> None:
    repository = StoredServers(MemoryServers())
    assert [await repository.add("ann", PLAIN), await repository.add("ann", PLAIN)] == [True, False]
    assert [await repository.remove("ann", "plain"), await repository.remove("ann", "plain")] == [True, False]


def test_a_stored_entry_is_written_as_add_server_takes_it() -> None:
    assert entry_of(PLAIN) == {
        "name": "plain",
        "url": "https://h/mcp",
        "type": "sse",
        "headers": {"A": "b"},
        "mode": "auto",
    }
