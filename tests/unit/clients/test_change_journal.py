"""Files that change together, and come back byte for byte."""

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


def test_what_was_changed_comes_back_byte_for_byte_with_its_mode(journal: ChangeJournal, tmp_path: Path) -> None:
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


def test_changes_on_top_of_each_other_are_undone_the_latest_first(journal: ChangeJournal, tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"0")
    for after in (b"1", b"2"):
        journal.carry_out("install", [a_change(file, after)], now=NOW)
    latest, earlier = journal.changes()
    with pytest.raises(ClientError, match="was changed since"):
        journal.undo(earlier)
    assert file.read_bytes() == b"2"
    journal.undo(latest)
    journal.undo(earlier)
    assert file.read_bytes() == b"0"


def test_a_file_that_was_changed_since_is_left_alone_and_so_are_the_others(
    journal: ChangeJournal, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    change = journal.carry_out("import", [a_change(one, b"-"), a_change(two, b"-")], now=NOW)
    two.write_bytes(b"by hand")
    with pytest.raises(ClientError, match=r"two was changed since .* copy from it what you want back") as refused:
        journal.undo(change)
    assert str(change.folder / "1-two") in str(refused.value)
    assert (one.read_bytes(), two.read_bytes()) == (b"-", b"by hand")
    journal.forget(change)
    assert journal.changes() == []


def test_a_change_that_was_cut_off_in_the_middle_can_be_undone(journal: ChangeJournal, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"2")
    change = journal.carry_out("import", [a_change(one, b"-"), a_change(two, b"-")], now=NOW)
    two.write_bytes(b"2")  # as if it had been killed before
    journal.undo(change)
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"2")


def test_if_one_file_cannot_be_written_none_is(journal: ChangeJournal, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"1")
    two.write_bytes(b"what someone wrote since")
    stale = FileChange(path=two, before=b"what was read", after=b"-")
    with pytest.raises(ClientError, match="was changed just now"):
        journal.carry_out("import", [a_change(one, b"-"), stale], now=NOW)
    assert (one.read_bytes(), two.read_bytes()) == (b"1", b"what someone wrote since")
    assert journal.changes() == []


def test_a_link_still_leads_to_the_file(tmp_path: Path) -> None:
    file, link = tmp_path / "dotfiles.json", tmp_path / "link.json"
    file.write_bytes(b"1")
    link.symlink_to(file)
    write_file(link, b"2")
    assert link.is_symlink()
    assert file.read_bytes() == b"2"
    assert sorted(os.listdir(tmp_path)) == ["dotfiles.json", "link.json"]


def test_only_so_many_changes_are_kept(journal: ChangeJournal, tmp_path: Path) -> None:
    file = tmp_path / "a"
    for number in range(MOST_KEPT + 2):
        journal.carry_out("install", [a_change(file, str(number).encode())], now=NOW)
    assert [change.number for change in journal.changes()] == list(range(MOST_KEPT + 2, 2, -1))
