"""emceepee's own configuration file: where it is, which servers it has, and the same text with more of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emceepee.clients import jsonc
from emceepee.clients.documents import read_bytes
from emceepee.clients.faults import BadDocument, ClientError
from emceepee.json_types import JsonObject
from emceepee.own_files import CONFIG_VARIABLE, usual_config

_OBJECTS = ("mcpServers", "mcpClients")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnConfig:
    """`content` is None if there is none yet."""

    path: Path
    content: bytes | None

    @classmethod
    def find(cls, given: str | None, environment: Mapping[str, str]) -> "OwnConfig":
        """By the flag, else the variable, else in its usual place. Raises: ClientError."""
        text = given or environment.get(CONFIG_VARIABLE, "").strip()
        if text.startswith("{"):
            raise ClientError(
                f"{CONFIG_VARIABLE} holds the configuration itself, and so nothing can be written there; name a file "
                "with --config"
            )
        try:
            path = Path(text).expanduser().absolute() if text else usual_config(environment)
        except RuntimeError:
            raise ClientError("this user has no home directory; name a file with --config") from None
        return cls(path=path, content=read_bytes(path))

    def servers(self) -> dict[str, JsonObject]:
        """Entries without their names. Raises: ClientError."""
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

    def with_servers(self, servers: Iterable[tuple[str, JsonObject]]) -> bytes:
        """Where the others stand. Raises: ClientError."""
        document, text = self._document(), self._text()
        listed = document.get("servers")
        if isinstance(listed, list) and "mcpServers" not in document:
            entries = [{"name": name, **entry} for name, entry in servers]
            # A list has no names to put things under, so it is written anew as a whole.
            return jsonc.put(text, (), "servers", [*listed, *entries]).encode()
        place = "servers" if isinstance(listed, dict) and "mcpServers" not in document else "mcpServers"
        for name, entry in servers:
            text = jsonc.put(text, (place,), name, entry)
        return text.encode()

    def with_entry(self, name: str, entry: JsonObject) -> bytes:
        """The one of that name, written anew where it stands. Raises: ClientError."""
        document, text = self._document(), self._text()
        listed = document.get("servers")
        if isinstance(listed, list) and any(_is_named(item, name) for item in listed):
            items = [{"name": name, **entry} if _is_named(item, name) else item for item in listed]
            return jsonc.put(text, (), "servers", items).encode()
        places = [key for key in ("servers", *_OBJECTS) if isinstance(document.get(key), dict)]
        place = next((key for key in places if name in document[key]), "mcpServers")
        return jsonc.put(text, (place,), name, entry).encode()

    def without(self, name: str) -> bytes:
        """Raises: ClientError."""
        document, text = self._document(), self._text()
        listed = document.get("servers")
        if isinstance(listed, list) and any(_is_named(item, name) for item in listed):
            kept = [item for item in listed if not _is_named(item, name)]
            text = jsonc.put(text, (), "servers", kept)
        for place in ("servers", *_OBJECTS):
            if isinstance(document.get(place), dict):
                text = jsonc.remove(text, (place,), [name])
        return text.encode()

    def with_setting(self, name: str, setting: str, value: object) -> bytes:
        """A server with that setting; None takes it away. Only that key is touched, where the file has a place for it.

        Raises:
            ClientError
        """
        document, text = self._document(), self._text()
        places = [key for key in ("servers", *_OBJECTS) if isinstance(document.get(key), dict)]
        place = next((key for key in places if name in document[key]), None)
        if place is None:
            entry = {key: held for key, held in self.servers()[name].items() if key != setting}
            return self.with_entry(name, entry if value is None else entry | {setting: value})
        if value is None:
            return jsonc.remove(text, (place, name), [setting]).encode()
        return jsonc.put(text, (place, name), setting, value).encode()

    def _text(self) -> str:
        try:
            return "" if self.content is None else self.content.decode("utf-8")
        except UnicodeDecodeError:
            raise BadDocument(f"{self.path}: not text in UTF-8; save it as that first") from None

    def _document(self) -> JsonObject:
        try:
            found = jsonc.read(self._text())
        except BadDocument as error:
            raise BadDocument(f"{self.path}: {str(error).removeprefix(f'{self.path}: ')}") from None
        if not isinstance(found, dict):
            raise BadDocument(f"{self.path}: expected a JSON object with servers or mcpServers")
        return found


def _is_named(item: Any, name: str) -> bool:
    return isinstance(item, dict) and item.get("name") == name
