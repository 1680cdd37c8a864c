"""Secrets in the platform's keyring: what the state says of them, and what is left where."""

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


async def test_the_state_only_knows_where_it_is(place: PlacedSecrets, state: MemoryStore, texts: MemoryKeyring) -> None:
    revision = await place.put_secret(WHO, NAME, DATA, revision=0)
    found, kept = await place.secret(WHO, NAME), await state.secret(WHO, NAME)
    assert found is not None
    assert kept is not None
    assert (found.data, found.revision) == (DATA, revision)
    assert await place.secrets_of(WHO) == [found]
    assert kept.data.startswith(MARK)
    assert b"secret" not in kept.data
    assert [service for service, _ in texts.texts] == ["emceepee"]


async def test_a_change_leaves_one_text_and_a_removal_none(place: PlacedSecrets, texts: MemoryKeyring) -> None:
    first = await place.put_secret(WHO, NAME, DATA, revision=0)
    second = await place.put_secret(WHO, NAME, b"new", revision=first or 0)
    assert len(texts.texts) == 1
    assert not await place.drop_secret(WHO, NAME, revision=first or 0)
    assert await place.drop_secret(WHO, NAME, revision=second or 0)
    assert (texts.texts, await place.secret(WHO, NAME)) == ({}, None)


async def test_who_comes_too_late_changes_nothing_and_leaves_nothing(
    place: PlacedSecrets, texts: MemoryKeyring
) -> None:
    await place.put_secret(WHO, NAME, DATA, revision=0)
    assert await place.put_secret(WHO, NAME, b"late", revision=0) is None
    found = await place.secret(WHO, NAME)
    assert found is not None
    assert (found.data, len(texts.texts)) == (DATA, 1)


async def test_each_place_reads_what_the_other_wrote(state: MemoryStore, texts: MemoryKeyring) -> None:
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


async def test_what_was_taken_out_of_the_keyring_is_empty_and_can_be_replaced(
    place: PlacedSecrets, texts: MemoryKeyring
) -> None:
    """It may be another keyring for the moment: nothing is thrown away because of that."""
    revision = await place.put_secret(WHO, NAME, DATA, revision=0)
    texts.texts.clear()
    found = await place.secret(WHO, NAME)
    assert found is not None
    assert (found.data, found.revision) == (b"", revision)
    assert await place.put_secret(WHO, NAME, b"new", revision=found.revision) is not None


async def test_a_locked_keyring_is_trouble_of_the_store_and_nothing_is_changed(
    place: PlacedSecrets, texts: MemoryKeyring
) -> None:
    await place.put_secret(WHO, NAME, DATA, revision=0)
    texts.is_locked = True
    with pytest.raises(StoreUnavailable, match="it is locked"):
        await place.secret(WHO, NAME)
    texts.is_locked = False
    assert await place.secret(WHO, NAME) is not None


async def test_one_that_does_not_answer_blocks_neither_the_loop_nor_anybody_forever(
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
    with pytest.raises(NoKeyring, match="leave --secrets out"):
        check_keyring()
