"""Stored secrets, and the source of their key."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from emceepee.store.secret_box import KEY_BYTES, SecretBox, StateKey, Tampered
from emceepee.store.store import StoreUnusable

KEY = bytes(range(KEY_BYTES))
TEXT = base64.urlsafe_b64encode(KEY).decode()
PLACE = ("alice", "github")


def test_a_sealed_secret_can_be_opened_and_does_not_contain_its_plain_text() -> None:
    box = SecretBox(KEY)
    sealed = box.seal(b"token", place=PLACE)
    assert b"token" not in sealed
    assert sealed != box.seal(b"token", place=PLACE)
    assert SecretBox(KEY).open(sealed, place=PLACE) == b"token"


@pytest.mark.parametrize("place", [("bob", "github"), ("alice", "gitlab"), ("alicegithub", ""), ("alice",)])
def test_a_secret_sealed_for_one_place_cannot_be_opened_in_another(place: tuple[str, ...]) -> None:
    box = SecretBox(KEY)
    with pytest.raises(Tampered):
        box.open(box.seal(b"token", place=PLACE), place=place)


def test_a_secret_that_was_altered_or_sealed_with_another_key_cannot_be_opened() -> None:
    box = SecretBox(KEY)
    sealed = box.seal(b"token", place=PLACE)
    for bad in (b"", sealed[:5], sealed[:-1], sealed[:-1] + bytes([sealed[-1] ^ 1])):
        with pytest.raises(Tampered):
            box.open(bad, place=PLACE)
    with pytest.raises(Tampered):
        SecretBox(bytes(KEY_BYTES)).open(sealed, place=PLACE)


def test_a_state_key_is_created_once_and_is_private_to_its_owner(tmp_path: Path) -> None:
    key = StateKey(tmp_path / "state.db", None)
    assert key.load() is None
    made = key.make()
    file = tmp_path / "state.db.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert key.make().check_value == made.check_value
    again = StateKey(tmp_path / "state.db", None).load()
    assert again is not None
    assert again.check_value == made.check_value
    assert list(tmp_path.iterdir()) == [file]


def test_a_state_key_file_that_others_can_read_is_made_private(tmp_path: Path) -> None:
    file = tmp_path / "state.db.key"
    file.write_text(TEXT)
    file.chmod(0o644)
    assert StateKey(tmp_path / "state.db", None).load() is not None
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("given", [TEXT, TEXT.rstrip("="), f" {TEXT}\n"])
def test_a_state_key_from_the_environment_needs_no_file(tmp_path: Path, given: str) -> None:
    assert StateKey(tmp_path / "state.db", given).make().check_value == SecretBox(KEY).check_value
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", ["", "secret word", TEXT[:-8], TEXT + "AAAA", "ä" * 44, TEXT.replace("A", "!")])
@pytest.mark.parametrize("is_given", [True, False])
def test_an_invalid_state_key_is_rejected_without_showing_it(tmp_path: Path, bad: str, *, is_given: bool) -> None:
    (tmp_path / "state.db.key").write_text(bad)
    key = StateKey(tmp_path / "state.db", bad if is_given else None)
    with pytest.raises(StoreUnusable) as refused:
        key.load()
    assert ("EMCEEPEE_STATE_KEY" if is_given else str(tmp_path / "state.db.key")) in str(refused.value)
    assert "32 bytes" in str(refused.value)
    assert not bad or bad not in str(refused.value)


def test_the_command_in_the_state_key_error_creates_a_valid_key(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable) as refused:
        StateKey(tmp_path / "state.db", "bad").load()
    command = str(refused.value).partition("python3 -c '")[2].removesuffix("'")
    made = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True).stdout
    assert StateKey(tmp_path / "state.db", made).load() is not None


def test_a_wrong_state_key_is_reported_with_its_source(tmp_path: Path) -> None:
    expected = SecretBox(os.urandom(KEY_BYTES)).check_value
    with pytest.raises(StoreUnusable, match="another key than that in the variable EMCEEPEE_STATE_KEY") as refused:
        StateKey(tmp_path / "state.db", TEXT).verify(expected)
    assert TEXT not in str(refused.value)
    with pytest.raises(StoreUnusable, match=r"state\.db\.key is missing"):
        StateKey(tmp_path / "state.db", None).verify(expected)


def test_a_store_without_secrets_does_not_import_cryptography() -> None:
    program = "import sys, emceepee.store.sqlite.sqlite_store; sys.exit('cryptography' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
