"""Backups of files that emceepee changed, so that each change can be undone byte for byte.

If a file was edited later, undo reverts only the entries that emceepee wrote.

Each change has a folder in the user's state folder. Its `change.json` lists the files; their copies are next to it.
"""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from emceepee.bounds.files import read_file
from emceepee.clients.changes import (
    LARGEST_FILE,
    FileChange,
    digest,
    make_folders,
    read_now,
    write_all,
    write_file,
)
from emceepee.clients.entry_changes import Conflict, EntryChange, entry_changes, take_back
from emceepee.config.document_errors import BadDocument, ClientError
from emceepee.paths import PRIVATE_FOLDER
from emceepee.wire.json_types import JsonObject

FOLDER_NAME = "client-changes"
RECORD = "change.json"
LARGEST_RECORD = 16 << 20  # bytes
EMPTY: Mapping[Path, bytes | None] = MappingProxyType({})
MOST_KEPT = 50  # older changes are deleted together with their copies


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """A completed command. `files` are records with path, digests, mode, and the name of the copy."""

    folder: Path
    number: int
    command: str
    at: str
    files: tuple[JsonObject, ...]
    made_folders: tuple[str, ...]
    own_urls: tuple[str, ...] = ()

    @property
    def paths(self) -> list[str]:
        return [str(file["path"]) for file in self.files]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """The change that undo makes to a file.

    `is_by_entry`: the file was edited later, so only our entries are reverted.
    """

    change: FileChange
    is_by_entry: bool


class ChangeJournal:
    """`folder` is the user's state folder for emceepee."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / FOLDER_NAME

    def changes(self) -> list[JournalEntry]:
        """Return all changes, the latest first. Raises: ClientError."""
        if not self._folder.is_dir():
            return []
        found = [self._read(place) for place in self._folder.iterdir() if place.name.isdecimal()]
        return sorted((change for change in found if change is not None), key=lambda change: -change.number)

    def own_urls(self) -> list[str]:
        """Return the addresses at which clients were configured to reach emceepee."""
        return [url for change in self.changes() for url in change.own_urls]

    def carry_out(
        self, command: str, changes: Iterable[FileChange], *, now: datetime, own_urls: Sequence[str] = ()
    ) -> JournalEntry:
        """Back up the files, then write them. Raises: ClientError; then nothing has changed."""
        changes = [change for change in changes if change.is_change]
        made: list[Path] = []
        folder: Path | None = None
        try:
            make_folders(self._folder / "x")
            number = max((change.number for change in self.changes()), default=0) + 1
            folder = self._folder / f"{number:04}"
            folder.mkdir(PRIVATE_FOLDER)
            for change in changes:
                made += make_folders(change.path)
            files = tuple(self._keep(folder, index, change) for index, change in enumerate(changes))
            record: JsonObject = {
                "command": command,
                "at": now.isoformat(),
                "files": list(files),
                "madeFolders": [str(each) for each in made],
                "ownUrls": list(own_urls),
            }
            write_file(folder / RECORD, json.dumps(record, indent=2).encode())
            write_all(changes)
        except (OSError, ClientError) as error:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            _remove_empty(made)
            if isinstance(error, ClientError):
                raise
            place = error.filename or self._folder
            raise ClientError(f"{place} cannot be written: {error.strerror}; nothing was changed") from None
        self._forget_old()
        found = self._read(folder)
        assert found is not None  # it was written above
        return found

    def restorations(self, change: JournalEntry, later: Mapping[Path, bytes | None] = EMPTY) -> list[Restoration]:
        """Return what `undo` would do if the files first had the content in `later`.

        Raises: ClientError if the change cannot be undone.
        """
        return [self._restored(change, file, later) for file in change.files]

    def undo(self, change: JournalEntry) -> list[FileChange]:
        """Restore the files. Raises: ClientError if a written entry was edited later; then nothing has changed."""
        restored = self.restorations(change)
        backward = [each.change for each in restored if each.change.is_change]
        try:
            write_all(backward)
            for file, each in zip(change.files, restored, strict=True):
                if file["mode"] is not None and not each.is_by_entry:
                    Path(file["path"]).chmod(int(file["mode"]))
        except OSError as error:
            raise ClientError(f"{error.filename} cannot be written: {error.strerror}") from None
        _remove_empty([Path(each) for each in change.made_folders])
        shutil.rmtree(change.folder, ignore_errors=True)
        return backward

    def _restored(self, change: JournalEntry, file: JsonObject, later: Mapping[Path, bytes | None]) -> Restoration:
        path = Path(file["path"])
        try:
            current = later[path] if path in later else read_now(path)
            before = None if file["copy"] is None else read_file(change.folder / str(file["copy"]), LARGEST_FILE)
        except OSError as error:
            raise ClientError(f"{error.filename} cannot be read: {error.strerror}") from None
        if digest(before) != file["before"]:
            raise ClientError(f"the copy of {path} in {change.folder} does not match its digest; nothing was changed")
        if digest(current) in (file["after"], file["before"]):
            return Restoration(change=FileChange(path=path, before=current, after=before), is_by_entry=False)
        try:
            after = self._by_entry(path, current, before, file)
        except (Conflict, BadDocument) as error:
            what = f'the server "{error}" in {path}' if isinstance(error, Conflict) else str(path)
            way = f"The original file is {change.folder / str(file['copy'])}: copy the parts that you need from it"
            if before is None:
                way = "The file did not exist before: delete the parts that you do not need"
            raise ClientError(
                f"{what} was edited after this change ({change.command}, {change.at[:16]}), and undo would lose the "
                f"edits. {way}, then forget the change with: emceepee undo {change.number} --forget"
            ) from None
        return Restoration(change=FileChange(path=path, before=current, after=after), is_by_entry=True)

    def _by_entry(self, path: Path, current: bytes | None, before: bytes | None, file: JsonObject) -> bytes | None:
        """Raises: Conflict, BadDocument."""
        try:
            entries = [EntryChange.of(record) for record in file.get("entries") or ()]
        except (KeyError, TypeError):
            entries = []
        if current is None or not entries:
            raise BadDocument
        return take_back(path, current, before, entries)

    def forget(self, change: JournalEntry) -> None:
        shutil.rmtree(change.folder, ignore_errors=True)

    def _keep(self, folder: Path, index: int, change: FileChange) -> JsonObject:
        copy = None if change.before is None else f"{index}-{change.path.name}"
        mode = None
        if copy is not None and change.before is not None:
            write_file(folder / copy, change.before)
            mode = change.path.stat().st_mode & 0o7777
        return {
            "path": str(change.path),
            "before": digest(change.before),
            "after": digest(change.after),
            "copy": copy,
            "mode": mode,
            "entries": [each.record() for each in entry_changes(change)],
        }

    def _read(self, folder: Path) -> JournalEntry | None:
        """Return the recorded change, or None if emceepee was interrupted before it wrote the record."""
        try:
            record: Any = json.loads(read_file(folder / RECORD, LARGEST_RECORD))
            return JournalEntry(
                folder=folder,
                number=int(folder.name),
                command=record["command"],
                at=record["at"],
                files=tuple(record["files"]),
                made_folders=tuple(record["madeFolders"]),
                own_urls=tuple(record["ownUrls"]),
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise ClientError(f"{folder / RECORD} cannot be read; move that folder away") from None

    def _forget_old(self) -> None:
        for change in self.changes()[MOST_KEPT:]:
            self.forget(change)


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):  # not empty: another program may have added files
            folder.rmdir()
