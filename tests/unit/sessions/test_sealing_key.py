"""The key for secrets in session records is loaded from the store once, on demand."""

import asyncio

from emceepee.sessions.sealing_key import Sealing
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Sealer, StoreUnavailable


class CountingStore(MemoryStore):
    def __init__(self, *, fails: int = 0, has_key: bool = True) -> None:
        super().__init__(is_durable=True)
        self.asked, self._fails, self._has_key = 0, fails, has_key

    async def sealer(self) -> Sealer | None:
        self.asked += 1
        if self.asked <= self._fails:
            raise StoreUnavailable("not now")
        return await super().sealer() if self._has_key else None


async def test_concurrent_callers_load_the_sealing_key_once() -> None:
    store = CountingStore()
    sealing = Sealing(store)
    assert (sealing.sealer, sealing.is_loaded, store.asked) == (None, False, 0)
    await asyncio.gather(*(sealing.load() for _ in range(3)))
    assert sealing.sealer is not None
    assert store.asked == 1


async def test_a_failed_load_of_the_sealing_key_is_retried_and_a_missing_key_is_not() -> None:
    failing = Sealing(CountingStore(fails=1))
    await failing.load()
    assert not failing.is_loaded
    await failing.load()
    assert failing.sealer is not None
    keyless = CountingStore(has_key=False)
    sealing = Sealing(keyless)
    await sealing.load()
    await sealing.load()
    assert (sealing.is_loaded, sealing.sealer, keyless.asked) == (True, None, 1)
    nowhere = Sealing()
    await nowhere.load()
    assert (nowhere.is_loaded, nowhere.sealer) == (True, None)
