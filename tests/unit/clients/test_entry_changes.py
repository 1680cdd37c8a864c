"""Undoing changes of a file that was modified since."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from emceepee.clients.change_journal import ChangeJournal, JournalEntry
from emceepee.clients.client_file import ClientFile
from emceepee.clients.client_program import ClientProgram, Format
from emceepee.clients.entry_changes import MOST_VALUES
from emceepee.clients.entry_writer import Launch, entry_for
from emceepee.clients.known_clients import CLIENTS, client_called
from emceepee.clients.own_config import OwnConfig
from emceepee.config.document_errors import ClientError

NOW = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
GIT = {"command": "uvx", "args": ["mcp-server-git"]}
MINE = {"type": "stdio", "command": "/opt/emceepee", "args": []}


@pytest.fixture
def journal(tmp_path: Path) -> ChangeJournal:
    return ChangeJournal(tmp_path / "state")


@pytest.fixture
def claude(tmp_path: Path) -> Path:
    return tmp_path / ".claude.json"


def file_at(path: Path, client: str = "claude-code") -> ClientFile:
    return ClientFile.at(client_called(client), path)


def install(journal: ChangeJournal, path: Path) -> JournalEntry:
    file = file_at(path)
    return journal.carry_out("install", [file.changed(file.with_entry("emceepee", MINE))], now=NOW)


def rewrite(path: Path, **more: Any) -> None:
    """Rewrite the file as a client that stores other settings in it."""
    held = json.loads(path.read_text())
    path.write_text(json.dumps(held | more, indent=2))


def test_undo_removes_only_our_entry_from_a_file_that_its_client_rewrote(journal: ChangeJournal, claude: Path) -> None:
    claude.write_text(json.dumps({"theme": "dark", "mcpServers": {"git": GIT}}))
    change = install(journal, claude)
    rewrite(claude, numStartups=1, theme="light")
    [restored] = journal.restorations(change)
    assert restored.is_by_entry
    assert "/opt/emceepee" in restored.change.diff()
    assert "numStartups" not in "".join(line for line in restored.change.diff().splitlines() if line[0] in "-+")
    journal.undo(change)
    assert json.loads(claude.read_text()) == {"theme": "light", "mcpServers": {"git": GIT}, "numStartups": 1}
    assert journal.changes() == []


def test_undo_removes_the_objects_that_were_created_for_the_entry(journal: ChangeJournal, claude: Path) -> None:
    claude.write_text('{"theme": "dark"}')
    change = install(journal, claude)
    rewrite(claude, numStartups=1)
    journal.undo(change)
    assert json.loads(claude.read_text()) == {"theme": "dark", "numStartups": 1}


def test_undo_keeps_a_created_file_if_it_has_other_contents(journal: ChangeJournal, claude: Path) -> None:
    change = install(journal, claude)
    rewrite(claude, numStartups=1)
    journal.undo(change)
    assert json.loads(claude.read_text()) == {"numStartups": 1}
    claude.unlink()
    change = install(journal, claude)
    claude.write_text(claude.read_text() + "\n\n")
    journal.undo(change)
    assert not claude.exists()


def test_undo_restores_imported_servers_and_keeps_later_ones(journal: ChangeJournal, claude: Path) -> None:
    claude.write_text(json.dumps({"mcpServers": {"git": GIT, "time": GIT}}))
    file = file_at(claude)
    change = journal.carry_out("import", [file.changed(file.without(["git", "time"]))], now=NOW)
    rewrite(claude, mcpServers={"new": GIT})
    journal.undo(change)
    assert json.loads(claude.read_text()) == {"mcpServers": {"new": GIT, "git": GIT, "time": GIT}}


def test_undo_reverts_all_changes_of_a_rewritten_file_latest_first(journal: ChangeJournal, claude: Path) -> None:
    claude.write_text(json.dumps({"mcpServers": {"git": GIT}}))
    file = file_at(claude)
    journal.carry_out("import", [file.changed(file.without(["git"]))], now=NOW)
    install(journal, claude)
    rewrite(claude, numStartups=1)
    for change in journal.changes():
        journal.undo(change)
    assert json.loads(claude.read_text()) == {"mcpServers": {"git": GIT}, "numStartups": 1}


def test_undo_removes_keys_that_the_client_added_to_our_entry(journal: ChangeJournal, claude: Path) -> None:
    change = install(journal, claude)
    rewrite(claude, mcpServers={"emceepee": MINE | {"env": {}, "disabled": False}}, numStartups=1)
    journal.undo(change)
    assert json.loads(claude.read_text()) == {"numStartups": 1}


def test_undo_succeeds_if_entries_are_already_removed_or_restored(journal: ChangeJournal, claude: Path) -> None:
    claude.write_text(json.dumps({"mcpServers": {"git": GIT}}))
    file = file_at(claude)
    without = ClientFile(client=file.client, path=file.path, content=file.without(["git"]))
    change = journal.carry_out("import", [file.changed(without.with_entry("emceepee", MINE))], now=NOW)
    by_hand = json.dumps({"mcpServers": {"git": GIT}, "x": 1})
    claude.write_text(by_hand)
    journal.undo(change)
    assert claude.read_text() == by_hand


@pytest.mark.parametrize(
    "now",
    [
        {"mcpServers": {"emceepee": MINE | {"command": "/by/hand"}}},
        {"mcpServers": {"emceepee": {"type": "stdio", "command": "/opt/emceepee"}}},
        {"mcpServers": {"emceepee": "what"}},
    ],
    ids=repr,
)
def test_undo_leaves_a_manually_edited_entry_unchanged(now: Any, journal: ChangeJournal, claude: Path) -> None:
    change = install(journal, claude)
    claude.write_text(json.dumps(now))
    with pytest.raises(
        ClientError, match=r'the server "emceepee" in .* was edited after .* delete the parts that you do not'
    ):
        journal.undo(change)
    assert json.loads(claude.read_text()) == now
    assert journal.changes() != []


@pytest.mark.parametrize("text", ["{oops", "[]", '{"mcpServers": []}', "\udcff"])
def test_undo_leaves_an_unreadable_file_unchanged(text: str, journal: ChangeJournal, claude: Path) -> None:
    change = install(journal, claude)
    claude.write_bytes(text.encode("utf-8", "surrogateescape"))
    before = claude.read_bytes()
    if text in ("[]", '{"mcpServers": []}'):
        journal.undo(change)
    else:
        with pytest.raises(ClientError, match="was edited after"):
            journal.undo(change)
    assert claude.read_bytes() == before


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.key)
def test_undo_removes_the_entry_of_every_client_and_keeps_later_edits(
    client: ClientProgram, journal: ChangeJournal, tmp_path: Path
) -> None:
    path = tmp_path / Path(client.files[0]).name
    texts = {Format.JSON: '{\n  "mine": 1 // yes\n}\n', Format.TOML: "mine = 1 # yes\n", Format.YAML: "mine: 1 # yes\n"}
    path.write_text(texts[client.format])
    file = ClientFile.at(client, path)
    entry = entry_for(client, file.place()[1], "emceepee", Launch(command=("/opt/emceepee", "--config", "x")))
    change = journal.carry_out("install", [file.changed(file.with_entry("emceepee", entry))], now=NOW)
    later = ClientFile.at(client, path).with_entry("later", entry | ({"name": "later"} if client.is_list else {}))
    path.write_bytes(later)
    journal.undo(change)
    assert [name for name, _ in ClientFile.at(client, path).entries()] == ["later"]
    assert ClientFile.at(client, path).document()["mine"] == 1
    assert " yes" in path.read_text()


@pytest.mark.parametrize(
    "text", ['{"servers": [{"name": "a", "url": "http://a"}]}', '{"mcpServers": {"a": {"url": "b"}}}']
)
def test_undo_keeps_manual_edits_of_our_own_configuration(text: str, journal: ChangeJournal, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(text)
    own = OwnConfig.find(str(path), {})
    journal.carry_out("servers add", [own.changed(own.with_servers([("git", GIT)]))], now=NOW)
    own = OwnConfig.find(str(path), {})
    journal.carry_out("servers disable", [own.changed(own.with_setting("a", "disabled", True))], now=NOW)
    own = OwnConfig.find(str(path), {})
    path.write_bytes(own.with_servers([("by-hand", GIT)]))
    for change in journal.changes():
        journal.undo(change)
    expected = OwnConfig(path=path, content=text.encode()).servers() | {"by-hand": GIT}
    assert OwnConfig.find(str(path), {}).servers() == expected


def test_a_change_record_without_entries_is_undone_whole_or_not_at_all(journal: ChangeJournal, claude: Path) -> None:
    """Earlier versions of emceepee wrote such records, and so do files with too many servers to compare."""
    servers = {f"a{number}": 1 for number in range(MOST_VALUES + 1)}
    claude.write_text(json.dumps({"mcpServers": servers}))
    file = file_at(claude)
    after = json.dumps({"mcpServers": servers | {"emceepee": MINE}}).encode()
    change = journal.carry_out("install", [file.changed(after)], now=NOW)
    assert change.files[0]["entries"] == []
    claude.write_text("{}")
    with pytest.raises(ClientError, match="was edited after"):
        journal.undo(change)
    record = change.folder / "change.json"
    facts = json.loads(record.read_text())
    facts["files"][0]["entries"] = [{"place": 5}]
    record.write_text(json.dumps(facts))
    with pytest.raises(ClientError, match="was edited after"):
        journal.undo(journal.changes()[0])
