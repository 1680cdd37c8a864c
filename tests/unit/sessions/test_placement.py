"""What a process knows of the others that share its store."""

from emceepee.sessions.placement import Placement
from emceepee.state.replica import Replica
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory import MemoryStore
from support.fakes.clock import FakeClock


async def test_whoever_wants_to_know_hears_when_others_come_and_go_and_not_else() -> None:
    machine = MemoryStore(is_durable=True)
    store, heard = machine.another_process("unix:/replica/0"), list[list[str]]()
    placement = Placement(store, FakeClock(), lease_seconds=3)
    placement.on_change.append(lambda: heard.append([each.address for each in placement.others]))
    await placement.refresh()
    heard.clear()
    other = store.another_process("unix:/replica/1")
    for _ in range(2):
        await placement.refresh()
    assert heard == [["unix:/replica/1"]]
    other.die()
    for _ in range(2):
        await placement.refresh()
    assert heard == [["unix:/replica/1"], []]


async def test_a_holder_that_was_not_known_yet_has_come() -> None:
    store, heard = MemoryStore(is_durable=True).another_process("unix:/replica/0"), list[int]()
    placement = Placement(store, FakeClock(), lease_seconds=3)
    await placement.refresh()
    placement.on_change.append(lambda: heard.append(1))
    holder = Replica(slot=9, epoch=9, address="unix:/replica/9")
    for value in ("a", "b"):
        placement.learn(SessionKey("ada", KeyKind.NAME, value), holder)
    assert heard == [1]
