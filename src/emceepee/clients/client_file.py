"""A client's file as text: read its servers, add one, or remove some."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from emceepee.bounds.files import read_file
from emceepee.clients.changes import LARGEST_FILE, FileChange
from emceepee.clients.client_program import ClientProgram, Format, Words
from emceepee.config.document_errors import BadDocument, ClientError
from emceepee.wire.json_types import JsonObject

MOST_SERVERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFile:
    """A file of a client. `content` is None if the file does not exist."""

    client: ClientProgram
    path: Path
    content: bytes | None

    @classmethod
    def at(cls, client: ClientProgram, path: Path) -> "ClientFile":
        """Raises: ClientError."""
        return cls(client=client, path=path, content=read_bytes(path))

    @property
    def text(self) -> str:
        """Raises: BadDocument."""
        if self.content is None:
            return self.client.new_file
        try:
            return self.content.decode("utf-8")
        except UnicodeDecodeError:
            raise BadDocument(f"{self.path}: not UTF-8 text; save it as UTF-8 first") from None

    @property
    def format(self) -> Format:
        return format_of(self.path)

    @property
    def places(self) -> tuple[tuple[str, ...], ...]:
        """Paths in the document at which servers can appear."""
        newer = self.client.newer_path
        return (self.client.path,) if newer is None else (self.client.path, newer)

    def changed(self, after: bytes | None) -> FileChange:
        return FileChange(path=self.path, before=self.content, after=after, places=self.places)

    def document(self) -> JsonObject:
        """Raises: BadDocument."""
        try:
            found = editor_of(self.format).read(self.text)
        except BadDocument as error:
            raise BadDocument(f"{self.path}: {error}") from None
        if not isinstance(found, dict):
            raise BadDocument(f"{self.path}: expected an object with {'.'.join(self.client.path)}")
        return found

    def entries(self, document: JsonObject | None = None) -> list[tuple[str, Any]]:
        """Return names and raw entries. Pass `document` if it is already parsed. Raises: BadDocument."""
        document = self.document() if document is None else document
        found: list[tuple[str, Any]] = []
        newer = self.client.newer_path
        if self._has_newer(document) and newer is not None:
            found += _pairs(value_at(document, newer))
        older = _pairs(value_at(document, self.client.path))
        taken = {name for name, _ in found} | ({newer[-1]} if newer is not None and found else set())
        found += [(name, entry) for name, entry in older if name not in taken]
        if len(found) > MOST_SERVERS:
            raise BadDocument(f"{self.path}: it has more than {MOST_SERVERS} servers")
        return found

    def place(self) -> tuple[tuple[str, ...], Words]:
        """Return the path for a new entry, and the key names it uses. Raises: BadDocument."""
        newer, words = self.client.newer_path, self.client.newer_words
        if newer is not None and words is not None and self._has_newer(self.document()):
            return newer, words
        return self.client.path, self.client.words

    def with_entry(self, name: str, entry: JsonObject) -> bytes:
        """Raises: ClientError."""
        path, _ = self.place()
        more = {"as_list": self.client.is_list} if self.format is Format.YAML else {}
        return self._edited(lambda editor: editor.put(self.text, path, name, entry, **more))

    def without(self, names: Iterable[str]) -> bytes:
        """Raises: ClientError."""
        gone = list(names)

        def edit(editor: ModuleType) -> Any:
            text = editor.remove(self.text, self.client.path, gone)
            newer = self.client.newer_path
            return editor.remove(text, newer, gone) if newer and self._has_newer(self.document()) else text

        return self._edited(edit)

    def _edited(self, edit: Any) -> bytes:
        try:
            text = str(edit(editor_of(self.format)))
            # parse the result: refusing an edit is better than corrupting the client's file
            editor_of(self.format).read(text)
        except BadDocument as error:
            raise BadDocument(f"{self.path}: {error}") from None
        return text.encode("utf-8")

    def _has_newer(self, document: JsonObject) -> bool:
        if self.client.newer_path is None:
            return False
        found = value_at(document, self.client.newer_path)
        return isinstance(found, dict) and not {"type", "command", "url"} & found.keys()


def format_of(path: Path) -> Format:
    """Derive the format from the file name, because some clients support several formats."""
    suffixes = {".toml": Format.TOML, ".yaml": Format.YAML, ".yml": Format.YAML}
    return suffixes.get(path.suffix, Format.JSON)


def read_bytes(path: Path) -> bytes | None:
    """Return the file's content, or None if it does not exist. Raises: ClientError."""
    try:
        return read_file(path, LARGEST_FILE)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ClientError(f"{path}: cannot be read: {error.strerror}") from None


def value_at(document: Any, path: Iterable[str]) -> Any:
    for step in path:
        document = document.get(step) if isinstance(document, dict) else None
    return document


def _pairs(found: Any) -> list[tuple[str, Any]]:
    if isinstance(found, dict):
        return [(str(name), entry) for name, entry in found.items()]
    if isinstance(found, list):
        return [(str(item.get("name", "")), item) for item in found if isinstance(item, dict)]
    return []


def editor_of(kind: Format) -> ModuleType:
    """Import the editor module on first use."""
    if kind is Format.TOML:
        from emceepee.clients import toml_edits

        return toml_edits
    if kind is Format.YAML:
        from emceepee.clients import yaml_edits

        return yaml_edits
    from emceepee.config import jsonc_edits

    return jsonc_edits
