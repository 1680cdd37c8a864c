"""Keyrings of our own, for the package `keyring`: in memory, and in a file that several processes use."""

import json
import os
from pathlib import Path
from typing import ClassVar

from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked, PasswordDeleteError

FILE_VARIABLE = "TEST_KEYRING_FILE"


class MemoryKeyring(KeyringBackend):
    """`texts` by service and name. It can be locked."""

    priority: ClassVar[float] = 1

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the package does not say
        self.texts: dict[tuple[str, str], str] = {}
        self.is_locked = False

    def _check(self) -> None:
        if self.is_locked:
            raise KeyringLocked("it is locked")

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.texts.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.texts[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        if self.texts.pop((service, username), None) is None:
            raise PasswordDeleteError("it is not there")


class FileKeyring(KeyringBackend):
    """A keyring in the file that a variable names, for processes that follow each other."""

    priority: ClassVar[float] = 1

    def get_password(self, service: str, username: str) -> str | None:
        return self._read().get(f"{service}\n{username}")

    def set_password(self, service: str, username: str, password: str) -> None:
        self._write(self._read() | {f"{service}\n{username}": password})

    def delete_password(self, service: str, username: str) -> None:
        texts = self._read()
        if texts.pop(f"{service}\n{username}", None) is None:
            raise PasswordDeleteError("it is not there")
        self._write(texts)

    @property
    def _file(self) -> Path:
        return Path(os.environ[FILE_VARIABLE])

    def _read(self) -> dict[str, str]:
        return dict(json.loads(self._file.read_text(encoding="utf-8"))) if self._file.exists() else {}

    def _write(self, texts: dict[str, str]) -> None:
        self._file.write_text(json.dumps(texts), encoding="utf-8")
