"""The description of a client: the location of its files, and the names it uses in server entries."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

LINUX, MACOS = "linux", "darwin"
HOME, CONFIG = "~", "$XDG_CONFIG_HOME"


class Format(StrEnum):
    JSON = "json"
    """With or without comments. Comments are preserved."""
    TOML = "toml"
    YAML = "yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The key names that a client uses when it writes an entry. `entry_reader.py` accepts the names of all clients."""

    url: str = "url"
    http_type: str | None = None  # the value of `type` for an HTTP server; None: the entry has no such key
    stdio_type: str | None = None
    command: str = "command"
    joins_args: bool = False  # the command and its arguments are one list
    env: str = "env"
    headers: str = "headers"
    repeats_name: bool = False  # the entry repeats the server's name
    fixed: Mapping[str, Any] = field(default_factory=dict)  # keys that every entry has


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProgram:
    """A program that starts MCP servers. `files` are in the order in which it searches; the first is the usual one."""

    key: str
    title: str
    files: tuple[str, ...]
    macos_files: tuple[str, ...] = ()  # if they differ from `files`
    programs: tuple[str, ...] = ()  # one folder per program, if several programs each read one of `files`
    macos_programs: tuple[str, ...] = ()
    folder: str | None = None  # a folder whose files the client reads as well
    project_file: str | None = None
    # an environment variable that names a folder, which is searched before `files`, and the file in that folder
    variable: tuple[str, str] | None = None
    format: Format = Format.JSON
    path: tuple[str, ...] = ("mcpServers",)
    newer_path: tuple[str, ...] | None = None  # used instead of `path` if the file already has it
    newer_words: Words | None = None
    is_list: bool = False
    words: Words = Words()
    load_flags: Mapping[str, Any] = field(default_factory=dict)  # keys that only emceepee's own entry gets
    # regexes of the client's reference syntax, and their replacements in emceepee's
    expansions: tuple[tuple[str, str], ...] = ()
    new_file: str = ""  # the initial content of a file that does not exist yet
    afterwards: str = "Restart it"

    def user_files(self, environment: Mapping[str, str], platform: str) -> tuple[Path, ...]:
        """Return the user's files in the client's search order. Raises: RuntimeError if there is no home."""
        texts = self.macos_files if platform == MACOS and self.macos_files else self.files
        paths = tuple(_expanded(text, environment) for text in texts)
        if self.variable is not None and environment.get(self.variable[0]):
            return (Path(environment[self.variable[0]]) / self.variable[1], *paths)
        return paths

    def program_folders(self, environment: Mapping[str, str], platform: str) -> tuple[Path, ...]:
        """Return one folder for each of the last files of `user_files`, or none if a single program reads them all."""
        texts = self.macos_programs if platform == MACOS and self.macos_programs else self.programs
        return tuple(_expanded(text, environment) for text in texts)

    def folder_files(self, environment: Mapping[str, str]) -> tuple[Path, ...]:
        """Return the JSON and YAML files in the client's folder, sorted by name."""
        if self.folder is None:
            return ()
        found = _expanded(self.folder, environment)
        try:
            return tuple(sorted(path for path in found.iterdir() if path.suffix in (".json", ".yaml", ".yml")))
        except OSError:
            return ()


def _expanded(text: str, environment: Mapping[str, str]) -> Path:
    home = Path(environment.get("HOME") or Path.home())
    given = Path(environment.get("XDG_CONFIG_HOME") or ".")
    config = given if given.is_absolute() else home / ".config"
    return config / text.removeprefix(f"{CONFIG}/") if text.startswith(CONFIG) else home / text.removeprefix(f"{HOME}/")
