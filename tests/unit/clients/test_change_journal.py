"""Files that change together, and are restored byte for byte."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from emceepee.clients.change_journal import MOST_KEPT, ChangeJournal
from emceepee.clients.changes import FileChange, write_file
from emceepee.config.document_errors import ClientError

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)


@pytest.fixture
def journal(tmp_path: Path) -> ChangeJournal:
    return ChangeJournal(tmp_path / "state")


def a_change(path: Path, after: bytes | None) -> FileChange:
    return FileChange(path=path, before=path.read_bytes() if path.exists() else None, after=after)


def test_undoing_a_change_restores_every_file_byte_for_byte_with_its_mode(
    journal: ChangeJournal, tmp_path: Path
) -> None:
    held, made = tmp_path / "held.json", tmp_path / "deep" / "er" / "made.json"
    held.write_bytes(b'\xef\xbb\xbf{"a":1}\r\n\x00')
    held.chmod(0o640)
    change = journal.carry_out("import", [a_change(held, b"{}"), a_change(made, b"new")], now=NOW)
    assert (held.read_bytes(), made.read_bytes()) == (b"{}", b"new")
    assert (held.stat().st_mode & 0o777, made.stat().st_mode & 0o777) == (0o640, 0o600)
    assert {path.stat().st_mode & 0o777 for path in change.folder.iterdir()} == {0o600}
    assert change.folder.stat().st_mode & 0o777 == 0o700
    journal.undo(change)
    assert held.read_bytes() == b'\xef\xbb\xbf{"a":1}\r\n\x00'
    assert held.stat().st_mode & 0o777 == 0o640
    assert not (tmp_path / "deep").exists()
    assert journal.changes() == []


def test_successive_changes_are_undone_in_reverse_order(journal: ChangeJournal, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"0")
    for after in (b"1", b"2"):
        journal.carry_out("install", [a_change(file, after)], now=NOW)
    latest, earlier = journal.changes()
    with pytest.raises(ClientError, match="was edited after"):
        journal.undo(earlier)
    assert file.read_bytes() == b"2"
    journal.undo(latest)
    journal.undo(earlier)
    assert file.read_bytes() == b"0"


def test_an_undo_changes_no_file_if_one_of_them_was_modified_since(journal: ChangeJournal, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    change = journal.carry_out("import", [a_change(one, b"-"), a_change(two, b"-")], now=NOW)
    two.write_bytes(b"by hand")
    with pytest.raises(ClientError, match=r"two was edited after .* copy the parts that you need from it") as refused:
        journal.undo(change)
    assert str(change.folder / "1-two") in str(refused.value)
    assert (one.read_bytes(), two.read_bytes()) == (b"-", b"by hand")
    journal.forget(change)
    assert journal.changes() == []


def test_an_interrupted_change_can_be_undone(journal: ChangeJournal, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    change = journal.carry_out("import", [a_change(one, b"-"), a_change(two, b"-")], now=NOW)
    two.write_bytes(b"2")  # as if the process had been killed earlier
    journal.undo(change)
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")


def test_if_one_file_cannot_be_written_no_file_is_changed(journal: ChangeJournal, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"what someone wrote since")
    stale = FileChange(path=two, before=b"what was read", after=b"-")
    with pytest.raises(ClientError, match="was just changed by another program"):
        journal.carry_out("import", [a_change(one, b"-"), stale], now=NOW)
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"what someone wrote since")
    assert journal.changes() == []


def test_writing_through_a_symbolic_link_keeps_the_link(tmp_path: Path) -> None:
    file, link = tmp_path / "dotfiles.json", tmp_path / "link.json"
    file.write_bytes(b"1")
    link.symlink_to(file)
    write_file(link, b"2")
    assert link.is_symlink()
    assert file.read_bytes() == b"2"
    assert sorted(os.listdir(tmp_path)) == ["dotfiles.json", "link.json"]


def test_the_journal_stores_a_limited_number_of_changes(journal: ChangeJournal, tmp_path: Path) -> None:
    file = tmp_path / "a"
    for number in range(MOST_KEPT + 2):
        journal.carry_out("install", [a_change(file, str(number).encode())], now=NOW)
    assert [change.number for change in journal.changes()] == list(range(MOST_KEPT + 2, 2, -1))
