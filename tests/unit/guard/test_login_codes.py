"""A login code works once, at the process that created it or at any process with the same store."""

import asyncio
from collections.abc import Sequence

import pytest

from emceepee.guard.login_codes import is_code
from emceepee.guard.logins import Logins
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Store, StoredLogin, StoreUnavailable
from support.fakes.clock import FakeClock


class Process:
    """A process with a console, and the codes that it printed for its operator."""

    def __init__(self, store: Store | None = None) -> None:
        self.clock = FakeClock()
        self.logins = Logins(self.clock, store=store)
        self.told: list[str] = []

    async def invite(self, principal: str = "ada") -> str:
        await self.logins.codes.invite(principal, self.told.append)
        return self.told[-1]

    async def redeem(self, code: str) -> str | None:
        return await self.logins.codes.redeem(code)


class FailingStore(MemoryStore):
    """A store that yields to other tasks after each read, and rejects writes while `is_away`."""

    is_away = False

    def another_process(self, address: str = "") -> "FailingStore":
        return FailingStore(is_durable=True, address=address, _memory=self._memory)

    async def logins(self) -> Sequence[StoredLogin]:
        found = await super().logins()
        await asyncio.sleep(0)
        return found

    async def add_login(self, login: StoredLogin) -> None:
        self._fail()
        await super().add_login(login)

    async def end_login(self, digest: bytes) -> bool:
        self._fail()
        return await super().end_login(digest)

    def _fail(self) -> None:
        if self.is_away:
            raise StoreUnavailable("away")


@pytest.fixture
def store() -> FailingStore:
    return FailingStore(is_durable=True)


@pytest.mark.parametrize("has_store", [False, True])
async def test_a_login_code_works_once_and_another_is_created_for_the_next_browser(
    store: FailingStore, *, has_store: bool
) -> None:
    process = Process(store if has_store else None)
    code = await process.invite()
    assert [await process.redeem(code) for _ in range(2)] == ["ada", None]
    assert len(process.told) == 2
    assert await process.redeem(process.told[-1]) == "ada"


@pytest.mark.parametrize("has_store", [False, True])
async def test_a_login_code_stays_valid_until_a_newer_one_is_created(store: FailingStore, *, has_store: bool) -> None:
    process = Process(store if has_store else None)
    older, bobs, newer = [await process.invite(principal) for principal in ("ada", "bob", "ada")]
    process.clock.jump(7 * 86_400)
    assert [await process.redeem(code) for code in (older, bobs, newer)] == [None, "bob", "ada"]


@pytest.mark.parametrize("has_store", [False, True])
@pytest.mark.parametrize("code", ["", "guess", "é", "\x00", "a" * 100_000])
async def test_a_wrong_login_code_is_rejected_and_creates_no_new_one(
    store: FailingStore, code: str, *, has_store: bool
) -> None:
    process = Process(store if has_store else None)
    await process.invite()
    assert await process.redeem(code) is None
    assert len(process.told) == 1


async def test_login_codes_are_long_unique_and_not_stored_in_plain_text(store: FailingStore) -> None:
    process = Process(store)
    codes = [await process.invite() for _ in range(50)]
    assert len(set(codes)) == 50
    assert all(len(code) * 6 >= 128 for code in codes)
    kept = repr((vars(process.logins.codes), await store.logins()))
    assert not [code for code in codes if code in kept]
    assert len(await store.logins()) == 1


# Several processes, one store.


async def test_a_login_code_of_one_process_works_at_another_and_then_nowhere(store: FailingStore) -> None:
    here, there, third = Process(store), Process(store.another_process()), Process(store.another_process())
    code = await here.invite()
    assert [await process.redeem(code) for process in (there, third, here)] == ["ada", None, None]


async def test_of_two_processes_that_receive_the_same_login_code_one_accepts_it(store: FailingStore) -> None:
    here, there = Process(store), Process(store.another_process())
    for _ in range(20):
        code = await here.invite()
        found = await asyncio.gather(*(process.redeem(code) for process in (here, there, here, there)))
        assert sorted(found, key=str) == [None, None, None, "ada"]


async def test_the_process_whose_login_code_was_used_elsewhere_creates_another(store: FailingStore) -> None:
    here, there = Process(store), Process(store.another_process())
    assert await there.redeem(await here.invite()) == "ada"
    assert there.told == []
    await here.logins.reload()
    await here.logins.reload()
    assert len(here.told) == 2
    assert await there.redeem(here.told[-1]) == "ada"


async def test_login_codes_of_two_processes_are_valid_at_the_same_time(store: FailingStore) -> None:
    here, there = Process(store), Process(store.another_process())
    codes = [await here.invite(), await there.invite()]
    assert [await here.redeem(code) for code in reversed(codes)] == ["ada", "ada"]


async def test_a_login_code_ends_with_the_process_that_created_it(store: FailingStore) -> None:
    dead = store.another_process()
    process, code = Process(store), await Process(dead).invite()
    dead.die()
    assert await process.redeem(code) is None
    assert len(await store.logins()) == 1
    own = await process.invite()
    await process.logins.load()
    assert len(await store.logins()) == 1
    assert await process.redeem(own) == "ada"


async def test_a_login_code_does_not_count_as_a_login(store: FailingStore) -> None:
    here, there = Process(store), Process(store.another_process())
    code = await here.invite()
    await there.logins.reload()
    (stored,) = await store.logins()
    assert is_code(stored)
    for secret in (code, stored.digest.decode("latin-1"), f"code:{code}"):
        assert there.logins.principal_of(secret) is None
    ended: list[bool] = []
    there.logins.watch_ends(lambda: ended.append(True))
    assert await here.redeem(code) == "ada"
    await there.logins.reload()
    assert ended == []


async def test_a_login_at_one_process_is_valid_at_another_after_a_refresh(store: FailingStore) -> None:
    here, there = Process(store), Process(store.another_process())
    await there.logins.reload()
    secret = here.logins.begin("ada")
    await here.logins.save()
    assert there.logins.principal_of(secret) is None
    await there.logins.refresh()
    assert there.logins.principal_of(secret) == "ada"


# The store is unavailable.


async def test_a_login_code_that_could_not_be_saved_is_valid_where_it_was_created(store: FailingStore) -> None:
    process, other = Process(store), Process(store.another_process())
    store.is_away = True
    code = await process.invite()
    assert await other.redeem(code) is None
    assert [await process.redeem(code) for _ in range(2)] == ["ada", None]
    store.is_away = False
    await process.logins.reload()
    assert [await each.redeem(code) for each in (other, process)] == [None, None]
    assert await other.redeem(process.told[-1]) == "ada"


async def test_a_login_code_that_another_process_may_have_used_is_rejected_and_a_newer_one_works(
    store: FailingStore,
) -> None:
    process = Process(store)
    code = await process.invite()
    store.is_away = True
    assert await process.redeem(code) is None
    assert await process.redeem(process.told[-1]) == "ada"
