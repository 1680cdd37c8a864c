"""Secrets in the keyring of the platform: references in the state, and the entries that remain."""

import asyncio
import threading
from collections.abc import Iterator

import keyring
import pytest
from keyring.backends import fail

from emceepee.clock import SystemClock
from emceepee.store.memory_store import MemoryStore
from emceepee.store.placed_secrets import MARK, PlacedSecrets
from emceepee.store.platform_keyring import KEYRING_SECONDS, NoKeyring, PlatformKeyring, check_keyring
from emceepee.store.store import StoreUnavailable
from support.fakes.clock import FakeClock, settle
from support.fakes.keyrings import MemoryKeyring
from support.waiting import eventually

WHO, NAME, DATA = "ann", '["tokens", "tracker", "x"]', b'{"secret": "\xc3\xa4"}'


@pytest.fixture
def texts() -> Iterator[MemoryKeyring]:
    before = keyring.get_keyring()
    made = MemoryKeyring()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


@pytest.fixture
def state() -> MemoryStore:
    return MemoryStore(is_durable=True)


@pytest.fixture
def place(texts: MemoryKeyring, state: MemoryStore) -> PlacedSecrets:
    return PlacedSecrets(state, PlatformKeyring(SystemClock()), is_preferred=True)


async def test_a_secret_in_the_keyring_leaves_only_a_reference_in_the_state(
    place: PlacedSecrets, state: MemoryStore, texts: MemoryKeyring
) -> None:
    revision = await place.put_secret(WHO, NAME, DATA, revision=0)
    found, kept = await place.secret(WHO, NAME), await state.secret(WHO, NAME)
    assert found is not None
    assert kept is not None
    assert (found.data, found.revision) == (DATA, revision)
    assert await place.secrets_of(WHO) == [found]
    assert kept.data.startswith(MARK)
    assert b"secret" not in kept.data
    assert [service for service, _ in texts.texts] == ["emceepee"]


async def test_changing_a_secret_leaves_one_keyring_entry_and_removing_it_leaves_none(
    place: PlacedSecrets, texts: MemoryKeyring
) -> None:
    first = await place.put_secret(WHO, NAME, DATA, revision=0)
    second = await place.put_secret(WHO, NAME, b"new", revision=first or 0)
    assert len(texts.texts) == 1
    assert not await place.drop_secret(WHO, NAME, revision=first or 0)
    assert await place.drop_secret(WHO, NAME, revision=second or 0)
    assert (texts.texts, await place.secret(WHO, NAME)) == ({}, None)


async def test_a_stale_write_of_a_secret_changes_nothing_and_leaves_no_keyring_entry(
    place: PlacedSecrets, texts: MemoryKeyring
) -> None:
    await place.put_secret(WHO, NAME, DATA, revision=0)
    assert await place.put_secret(WHO, NAME, b"late", revision=0) is None
    found = await place.secret(WHO, NAME)
    assert found is not None
    assert (found.data, len(texts.texts)) == (DATA, 1)


async def test_keyring_and_state_can_each_read_secrets_that_the_other_stored(
    state: MemoryStore, texts: MemoryKeyring
) -> None:
    ring = PlatformKeyring(SystemClock())
    in_state, in_ring = (PlacedSecrets(state, ring, is_preferred=preferred) for preferred in (False, True))
    revision = await in_state.put_secret(WHO, NAME, b"1", revision=0)
    found = await in_ring.secret(WHO, NAME)
    assert found is not None
    assert found.data == b"1"
    assert texts.texts == {}
    revision = await in_ring.put_secret(WHO, NAME, b"2", revision=revision or 0)
    found = await in_state.secret(WHO, NAME)
    assert found is not None
    assert found.data == b"2"
    await in_state.put_secret(WHO, NAME, b"3", revision=revision or 0)
    assert texts.texts == {}


async def test_a_secret_missing_from_the_keyring_is_empty_and_can_be_replaced(
    place: PlacedSecrets, texts: MemoryKeyring
) -> None:
    """Another keyring may be active temporarily, so the reference is not deleted."""
    revision = await place.put_secret(WHO, NAME, DATA, revision=0)
    texts.texts.clear()
    found = await place.secret(WHO, NAME)
    assert found is not None
    assert (found.data, found.revision) == (b"", revision)
    assert await place.put_secret(WHO, NAME, b"new", revision=found.revision) is not None


async def test_a_locked_keyring_raises_store_unavailable_and_changes_nothing(
    place: PlacedSecrets, texts: MemoryKeyring
) -> None:
    await place.put_secret(WHO, NAME, DATA, revision=0)
    texts.is_locked = True
    with pytest.raises(StoreUnavailable, match="it is locked"):
        await place.secret(WHO, NAME)
    texts.is_locked = False
    assert await place.secret(WHO, NAME) is not None


async def test_an_unresponsive_keyring_blocks_neither_the_loop_nor_a_caller_forever(
    texts: MemoryKeyring, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, unlocked = FakeClock(), threading.Event()
    answer = texts.get_password

    def wait_for_person(service: str, name: str) -> str | None:
        unlocked.wait(20)
        return answer(service, name)

    monkeypatch.setattr(texts, "get_password", wait_for_person)
    ring = PlatformKeyring(clock)
    reading = asyncio.ensure_future(ring.read("x"))
    await settle()
    await clock.advance(KEYRING_SECONDS)
    with pytest.raises(StoreUnavailable, match="did not answer"):
        await reading
    with pytest.raises(StoreUnavailable, match="did not answer"):
        await ring.read("x")  # at once
    unlocked.set()

    async def answers() -> bool:
        try:
            return await ring.read("x") is None
        except StoreUnavailable:
            return False

    await eventually(answers)


def test_a_missing_keyring_is_reported_with_the_next_step(texts: MemoryKeyring) -> None:
    check_keyring()
    keyring.set_keyring(fail.Keyring())  # type: ignore[no-untyped-call]  # the package does not say
    with pytest.raises(NoKeyring, match="omit --secrets"):
        check_keyring()
