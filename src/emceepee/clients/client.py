"""What is declared of a client: where its files are, and in which words they speak of servers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

LINUX, MACOS = "linux", "darwin"
HOME, CONFIG = "~", "$XDG_CONFIG_HOME"


class Format(StrEnum):
    JSON = "json"
    """With or without comments: they survive either way."""
    TOML = "toml"
    YAML = "yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """How a client writes an entry. What it reads besides, `reading.py` takes from any of them."""

    url: str = "url"
    http_type: str | None = None  # the value of `type` for an address; None: it has no such key
    stdio_type: str | None = None
    command: str = "command"
    joins_args: bool = False  # command and arguments are one list
    env: str = "env"
    headers: str = "headers"
    repeats_name: bool = False  # the name stands in the entry, too
    fixed: Mapping[str, Any] = field(default_factory=dict)  # in every entry


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientProgram:
    """One program that starts MCP servers. `files` are in the order in which it looks; the first is the usual one."""

    key: str
    title: str
    files: tuple[str, ...]
    macos_files: tuple[str, ...] = ()  # where they differ
    programs: tuple[str, ...] = ()  # folders of the programs that each read one of `files`, if that is not one program
    macos_programs: tuple[str, ...] = ()
    folder: str | None = None  # whose files are read, too
    project_file: str | None = None
    variable: tuple[str, str] | None = None  # names a folder that counts before `files`, and the file in it
    format: Format = Format.JSON
    path: tuple[str, ...] = ("mcpServers",)
    newer_path: tuple[str, ...] | None = None  # counts where the file has it already
    newer_words: Words | None = None
    is_list: bool = False
    words: Words = Words()
    load_flags: Mapping[str, Any] = field(default_factory=dict)  # in the entry of emceepee itself
    expansions: tuple[tuple[str, str], ...] = ()  # regexes of its own references, and what they are in ours
    new_file: str = ""  # what a file must hold besides, if there is none
    afterwards: str = "Restart it"

    def user_files(self, environment: Mapping[str, str], platform: str) -> tuple[Path, ...]:
        """In the order in which it looks. Raises: RuntimeError if there is no home."""
        texts = self.macos_files if platform == MACOS and self.macos_files else self.files
        paths = tuple(_expanded(text, environment) for text in texts)
        if self.variable is not None and environment.get(self.variable[0]):
            return (Path(environment[self.variable[0]]) / self.variable[1], *paths)
        return paths

    def program_folders(self, environment: Mapping[str, str], platform: str) -> tuple[Path, ...]:
        """One for each of the last files of `user_files`; none if one program reads them all."""
        texts = self.macos_programs if platform == MACOS and self.macos_programs else self.programs
        return tuple(_expanded(text, environment) for text in texts)

    def folder_files(self, environment: Mapping[str, str]) -> tuple[Path, ...]:
        """Those in its folder, in the order of their names."""
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
