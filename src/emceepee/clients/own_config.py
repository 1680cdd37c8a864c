"""emceepee's own configuration file: find it, read its servers, and edit them in place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emceepee.clients.changes import FileChange
from emceepee.clients.client_file import read_bytes
from emceepee.config import jsonc_edits
from emceepee.config.document_errors import BadDocument, ClientError
from emceepee.paths import CONFIG_VARIABLE, usual_config
from emceepee.wire.json_types import JsonObject

_OBJECTS = ("mcpServers", "mcpClients")
_PLACES = tuple((name,) for name in ("servers", *_OBJECTS))


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConfig:
    """`content` is None if the file does not exist yet."""

    path: Path
    content: bytes | None

    @classmethod
    def find(cls, given: str | None, environment: Mapping[str, str]) -> "OwnConfig":
        """Locate the file: the flag, else the environment variable, else the usual path. Raises: ClientError."""
        text = given or environment.get(CONFIG_VARIABLE, "").strip()
        if text.startswith("{"):
            raise ClientError(
                f"{CONFIG_VARIABLE} contains the configuration itself, so it cannot be edited; specify a file with "
                f"--config"
            )
        try:
            path = Path(text).expanduser().absolute() if text else usual_config(environment)
        except RuntimeError:
            raise ClientError("this user has no home directory; specify a file with --config") from None
        return cls(path=path, content=read_bytes(path))

    def servers(self) -> dict[str, JsonObject]:
        """Return entries without names, keyed by name. Raises: ClientError."""
        document = self._document()
        listed = document.get("servers", [])
        found: list[tuple[Any, Any]] = []
        if isinstance(listed, dict):
            found += listed.items()
        elif isinstance(listed, list):
            found += [(item.get("name"), item) for item in listed if isinstance(item, dict)]
        for shape in _OBJECTS:
            if isinstance(mapped := document.get(shape, {}), dict):
                found += mapped.items()
        return {
            str(name): {key: value for key, value in entry.items() if key != "name"}
            for name, entry in found
            if isinstance(entry, dict)
        }

    def settings(self) -> JsonObject:
        """Return all settings except the servers. Raises: ClientError."""
        return {key: value for key, value in self._document().items() if key not in ("servers", *_OBJECTS)}

    def changed(self, after: bytes | None) -> FileChange:
        return FileChange(path=self.path, before=self.content, after=after, places=_PLACES)

    def with_servers(self, servers: Iterable[tuple[str, JsonObject]]) -> bytes:
        """Add servers next to the existing ones. Pass at least one; no name may exist already. Raises: ClientError."""
        document, text = self._document(), self._text()
        listed = document.get("servers")
        if isinstance(listed, list) and "mcpServers" not in document:
            items = [(index, {"name": name, **entry}) for index, (name, entry) in enumerate(servers, len(listed))]
            return jsonc_edits.put_all(text, ("servers",), items).encode()
        place = "servers" if isinstance(listed, dict) and "mcpServers" not in document else "mcpServers"
        return jsonc_edits.put_all(text, (place,), list(servers)).encode()

    def without(self, name: str) -> bytes:
        """Raises: ClientError."""
        document, text = self._document(), self._text()
        text = jsonc_edits.remove(text, ("servers",), _indexes(document.get("servers"), name))
        for place in ("servers", *_OBJECTS):
            if isinstance(document.get(place), dict):
                text = jsonc_edits.remove(text, (place,), [name])
        return text.encode()

    def with_setting(self, name: str, setting: str, value: object) -> bytes:
        """Change one setting of a server, or remove it if `value` is None.

        Other keys stay as written. Raises: ClientError.
        """
        document, text = self._document(), self._text()
        objects = [key for key in ("servers", *_OBJECTS) if isinstance(document.get(key), dict)]
        places: list[jsonc_edits.Path] = [("servers", index) for index in _indexes(document.get("servers"), name)]
        places += [(key, name) for key in objects if name in document[key]]
        place = places[0] if places else ("mcpServers", name)
        if value is None:
            return jsonc_edits.remove(text, place, [setting]).encode()
        return jsonc_edits.put(text, place, setting, value).encode()

    def _text(self) -> str:
        try:
            return "" if self.content is None else self.content.decode("utf-8")
        except UnicodeDecodeError:
            raise BadDocument(f"{self.path}: not UTF-8 text; save it as UTF-8 first") from None

    def _document(self) -> JsonObject:
        try:
            found = jsonc_edits.read(self._text())
        except BadDocument as error:
            raise BadDocument(f"{self.path}: {str(error).removeprefix(f'{self.path}: ')}") from None
        if not isinstance(found, dict):
            raise BadDocument(f"{self.path}: expected a JSON object with servers or mcpServers")
        return found


def _indexes(listed: Any, name: str) -> list[int]:
    """Return the indexes of the server in a list."""
    items = listed if isinstance(listed, list) else []
    return [index for index, item in enumerate(items) if isinstance(item, dict) and item.get("name") == name]
