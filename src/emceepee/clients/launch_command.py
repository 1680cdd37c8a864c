"""Derive the command that starts emceepee from how the current process was started. No I/O except file checks."""

import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from emceepee.paths import OWN_NAME

# Temporary environments that uvx and `pipx run` create and delete again.
_OF_UVX = re.compile(r"[/\\](?:archive-v\d+|builds-v\d+|\.cache[/\\]uv|Caches[/\\]uv)[/\\]")
_OF_PIPX = re.compile(r"[/\\](?:pipx[/\\]\.cache|\.cache[/\\]pipx|Caches[/\\]pipx|\.cache[/\\][0-9a-f]{15})[/\\]")
_ONLY_NOW = ("--refresh", "--reinstall")  # flags that would slow down every start by a client
_PACKAGE_FILES = (".whl", ".tar.gz", ".zip")
_RUNNER = re.compile(r"uvx?|pipx|python[\d.]*")
_PACKAGE = re.compile(r"emceepee(?:(?:\[|==|@).*)?")
_RUNNER_COMMANDS = ("run", "tool", "uvx")
# Options of uvx and `pipx run` whose value is the next word. The first set holds options that name a file or folder.
_WITH_PATH = frozenset(
    {
        *("--with-editable", "--with-requirements", "--find-links", "-f", "--config-file", "--cache-dir", "--env-file"),
        *("--constraints", "-c", "--overrides", "--build-constraints", "-b", "--project"),
    }
)
_WITH_VALUE = _WITH_PATH | {
    *("--from", "--spec", "--with", "-w", "--python", "-p", "--prerelease", "--resolution", "--directory"),
    *("--index", "--index-url", "-i", "--default-index", "--extra-index-url", "--pip-args", "--allow-insecure-host"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStart:
    """How this process was started.

    `parent` is the command line of the parent process. `origin` is the `direct_url.json` of the installed package,
    which exists if the package came from a path or a repository.
    """

    program: str
    arguments: Sequence[str] = ()
    executable: str = sys.executable
    parent: Sequence[str] = ()
    origin: str | None = None
    folder: Path = Path()


def own_command(start: ProcessStart) -> tuple[str, ...]:
    """Return a command that starts emceepee from any working directory.

    The client has no virtual environment and often another PATH, so the command is an absolute path. In a temporary
    environment of uvx or pipx, it is the uvx or pipx command with the same package instead. `-P` keeps the client's
    working directory off the import path.
    """
    path = Path(os.path.abspath(start.program))
    for place in (str(path), start.executable):
        if _OF_UVX.search(place):
            spec = _spec(start.origin)
            return _runner_of(start) or ("uvx", *(("--from", spec) if spec else ()), OWN_NAME)
        if _OF_PIPX.search(place):
            spec = _spec(start.origin)
            return ("pipx", "run", *(("--spec", spec) if spec else ()), OWN_NAME)
    if path.name == OWN_NAME and os.access(path, os.X_OK):
        return (str(path),)
    beside = Path(start.executable).with_name(OWN_NAME)
    return (str(beside),) if os.access(beside, os.X_OK) else (start.executable, "-P", "-m", OWN_NAME)


def _runner_of(start: ProcessStart) -> tuple[str, ...] | None:
    """Return uvx's command line up to the program's name, or None if it cannot be determined.

    The program's own arguments follow that name.
    """
    words, count = [word for word in start.parent if word], len(start.arguments)
    if list(start.arguments) != words[len(words) - count :]:
        return None
    words = words[: len(words) - count]
    runner: tuple[str, ...]
    name = Path(words[0]).name if words else ""
    if name == "uv" and words[1:3] == ["tool", "uvx"]:  # uvx replaces itself with this command line
        runner, words = ("uvx",), words[3:]
    elif name == "uvx":
        runner, words = ("uvx",), words[1:]
    elif name == "uv" and words[1:3] == ["tool", "run"]:
        runner, words = ("uv", "tool", "run"), words[3:]
    else:
        return None
    if not words:
        return None
    words = [word for word in words if word not in _ONLY_NOW]
    return (*runner, *(_from_anywhere(word, before, start.folder) for before, word in pairwise(["", *words])))


def _from_anywhere(word: str, before: str, folder: Path) -> str:
    """Make a relative path absolute. A name without a slash is a path only if it follows an option that names files."""
    option, _, value = word.partition("=") if word.startswith("--") else (before, "", word)
    is_path = value.startswith(".") or "/" in value or value.endswith(_PACKAGE_FILES) or option in _WITH_PATH
    if not value or value.startswith("-") or not is_path or "://" in value or not (folder / value).exists():
        return word
    return f"{word.removesuffix(value)}{os.path.normpath(folder / value)}"


def _spec(origin: str | None) -> str | None:
    """Return the package as pip specifies it, or None if it came from an index."""
    try:
        found: Any = json.loads(origin or "null")
        url, vcs = found["url"], found.get("vcs_info") or {}
        if urlsplit(url).scheme == "file":
            return unquote(urlsplit(url).path)
        revision = vcs.get("requested_revision")
        kind = f"{vcs['vcs']}+" if vcs else ""
        below = f"#subdirectory={found['subdirectory']}" if found.get("subdirectory") else ""
        return f"{kind}{url}{f'@{revision}' if revision else ''}{below}"
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def starts_emceepee(command: str, args: Sequence[object]) -> bool:
    """Return whether this command starts emceepee, either directly or through a package runner."""
    name = Path(command).name
    if name in (OWN_NAME, "emceepee-http"):
        return True
    if not _RUNNER.fullmatch(name):
        return False
    is_value = False
    for word in args:
        if not isinstance(word, str):
            continue
        if not is_value and not word.startswith("-") and word not in _RUNNER_COMMANDS:
            return _PACKAGE.fullmatch(word) is not None
        is_value = not is_value and word in _WITH_VALUE
    return False
