"""File changes that are previewed first, and then either all written or all rolled back."""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import StringIO
from pathlib import Path

from emceepee.bounds.files import read_file
from emceepee.clients.file_mask import masked
from emceepee.config.document_errors import ClientError
from emceepee.paths import PRIVATE_FILE, PRIVATE_FOLDER

CONTEXT_LINES = 2  # lines of context in a diff
LINES_AROUND = 500  # lines around a change that are searched for the names of secrets
MOST_DIFFED, MOST_DIFFED_LINES = 1 << 20, 20_000  # characters
LARGEST_FILE = 64 << 20  # bytes; Claude Code stores much more than servers in its file


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """`before` is None for a new file, and `after` for a deleted one. `places` lists where servers can appear in it."""

    path: Path
    before: bytes | None
    after: bytes | None
    places: tuple[tuple[str, ...], ...] = ()

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """Return a diff for display, with secrets masked. If the changed part is too large, return only a header."""
        texts = [(content or b"").decode("utf-8", "replace") for content in (self.before, self.after)]
        before, after = (_lines(text) for text in texts)
        start, rest = _alike(before, after)
        begin = max(0, start - LINES_AROUND)
        before, after = (lines[begin : len(lines) - max(0, rest - LINES_AROUND)] for lines in (before, after))
        texts = ["".join(lines) for lines in (before, after)]
        header = [f"--- {self.path}", f"+++ {self.path}"]
        if max(map(len, texts)) > MOST_DIFFED or max(len(before), len(after)) > MOST_DIFFED_LINES:
            return "".join(f"{line}\n" for line in (*header, "@@ too many lines to show @@"))
        # Mask more lines than the diff shows: the name that marks a value as a secret may be on a line outside the
        # diff.
        was, will_be = (_lines(masked(text)) for text in texts)
        shown = []
        for group in SequenceMatcher(None, before, after).get_grouped_opcodes(CONTEXT_LINES):
            (_, first, _, start, _), (_, _, last, _, end) = group[0], group[-1]
            shown.append(f"@@ -{_range(begin + first, begin + last)} +{_range(begin + start, begin + end)} @@")
            for tag, i, until_i, j, until_j in group:
                if tag == "equal":
                    shown += [f" {line}" for line in was[i:until_i]]
                else:
                    shown += [f"-{line}" for line in was[i:until_i]] + [f"+{line}" for line in will_be[j:until_j]]
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in (header if shown else []) + shown)


def _alike(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return how many lines the two texts share at the beginning and at the end."""
    most = min(len(before), len(after))
    start = next((place for place in range(most) if before[place] != after[place]), most)
    rest = next((place for place in range(most - start) if before[-1 - place] != after[-1 - place]), most - start)
    return start, rest


def _range(first: int, end: int) -> str:
    """Format a range for a unified diff: lines count from 1, and an empty range names the line before it."""
    count = end - first
    return f"{first + 1}" if count == 1 else f"{first + 1 if count else first},{count}"


def _lines(text: str) -> list[str]:
    """Split text at line feeds only, and keep them. Other line separators stay part of a line."""
    return StringIO(text, newline="\n").readlines()


def digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def write_file(path: Path, content: bytes | None, *, mode: int | None = None) -> None:
    """Write a file atomically, or delete it if `content` is None.

    Keep its mode, and follow links. Raises: OSError.
    """
    path = path.resolve()
    if content is None:
        path.unlink(missing_ok=True)
        return
    try:
        held = path.stat()
    except FileNotFoundError:
        held = None
    descriptor, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode if mode is not None else held.st_mode & 0o7777 if held else PRIVATE_FILE)
            if held is not None:
                with suppress(OSError):  # only root may change a file's owner
                    os.fchown(file.fileno(), held.st_uid, held.st_gid)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def make_folders(path: Path) -> list[Path]:
    """Create the missing folders above a file, and return them, the outermost first. Raises: OSError."""
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(PRIVATE_FOLDER)
    return missing[::-1]


def write_all(changes: Iterable[FileChange]) -> None:
    """Write all files. If one cannot be written, restore the files before it. Raises: ClientError."""
    done: list[FileChange] = []
    for change in changes:
        try:
            if read_now(change.path) != change.before:
                raise ClientError(f"{change.path} was just changed by another program; try again")
            write_file(change.path, change.after)
        except (OSError, ClientError) as error:
            for earlier in reversed(done):
                with suppress(OSError):
                    write_file(earlier.path, earlier.before)
            if isinstance(error, ClientError):
                raise
            raise ClientError(f"{change.path} cannot be written: {error.strerror}; nothing was changed") from None
        done.append(change)


def read_now(path: Path) -> bytes | None:
    """Raises: OSError."""
    try:
        return read_file(path, LARGEST_FILE)
    except FileNotFoundError:
        return None
