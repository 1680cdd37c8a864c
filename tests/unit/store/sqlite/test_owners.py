"""Locks that end with their process show which processes are alive."""

import fcntl
import os
from pathlib import Path

import pytest

from emceepee.store.sqlite import owners
from emceepee.store.sqlite.owners import Owners, folder_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.db"


def joined(path: Path) -> Owners:
    one = Owners(path)
    with one.opening():
        one.join()
    return one


def test_an_owner_of_a_sqlite_file_is_alive_until_it_leaves_or_vanishes(path: Path) -> None:
    first, second, third = joined(path), joined(path), joined(path)
    assert set(first.alive()) == {first.own_id, second.own_id, third.own_id}
    second.leave()
    third.vanish()
    assert first.alive() == [first.own_id]
    assert not first.is_alive(second.own_id)
    assert not first.is_alive(third.own_id)
    assert not first.is_alive("never there")
    first.leave()


def test_dead_owners_are_removed_by_the_next_process_and_living_ones_are_not(path: Path) -> None:
    living, dead = joined(path), joined(path)
    dead.vanish()
    late = Owners(path)
    with late.opening():
        assert late.dead() == [dead.own_id]
        late.join()
        assert late.dead() == []
    assert sorted(os.listdir(folder_of(path))) == sorted([living.own_id, late.own_id, "opening"])
    living.leave()
    late.leave()
    assert os.listdir(folder_of(path)) == ["opening"]


def test_a_process_that_checks_a_lock_is_not_mistaken_for_its_owner(path: Path) -> None:
    """Two processes may check at the same time whether a third one is alive."""
    asking, dead = joined(path), joined(path)
    dead.vanish()
    looking = os.open(folder_of(path) / dead.own_id, os.O_RDONLY)
    fcntl.flock(looking, fcntl.LOCK_SH)
    assert not asking.is_alive(dead.own_id)
    os.close(looking)
    asking.leave()


def test_one_process_at_a_time_opens_a_sqlite_file_and_the_others_time_out(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owners, "_PATIENCE_SECONDS", 0.05)
    late = Owners(path).opening()
    with Owners(path).opening(), pytest.raises(OSError, match="has been opening it for too long"):
        late.__enter__()
    with Owners(path).opening():
        pass


def test_leaving_a_sqlite_file_twice_or_without_joining_has_no_effect(path: Path) -> None:
    one = joined(path)
    one.leave()
    one.leave()
    Owners(path).leave()


def test_owner_files_are_private_to_their_user(path: Path) -> None:
    mask = os.umask(0)
    try:
        one = joined(path)
    finally:
        os.umask(mask)
    folder = folder_of(path)
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    one.leave()


def test_a_process_that_joins_again_is_visible_even_if_its_owner_file_was_deleted(path: Path) -> None:
    one, other = joined(path), joined(path)
    (folder_of(path) / one.own_id).unlink()
    assert not other.is_alive(one.own_id)
    with one.opening():
        one.join()
    assert other.is_alive(one.own_id)
    one.leave()
    other.leave()
