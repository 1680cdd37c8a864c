"""Files that change together: shown first, then written whole or not at all."""

import difflib
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from emceepee.clients.faults import ClientError
from emceepee.telemetry.redaction import MASK, public_url

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
_TELLING = r"(?:authorization|cookie|token|secret|passw\w*|passphrase|credentials?|key|pat)"
_SECRET_MEMBER = re.compile(
    rf"(?i)(?P<key>(?<![\w.?&-])[\"']?[\w.-]*{_TELLING}[\"']?\s*[:=]\s*)"
    r"(?P<value>\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s\",{}\[\]][^\n,}]*)"
)
_SECRET_FLAG = re.compile(rf"(?i)(\"--?[\w-]*{_TELLING}(?:=|\",\s*\n?[+\- ]?\s*\"))[^\"]*\"")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+(?!\$\{)[^\s\"']+")
# A quoted text ends with its quote, whatever stands in the address in it; a bare address with the next space.
_WITH_ADDRESS = re.compile(
    r"(?<!\w)(?:\"(?:[^\"\\\n]|\\.)*\"?|'[^'\n]*'?)|(?<![\w+.-])[\w+.-]{1,40}://\S*|[?&][^=&#?\s]+=\S*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """`before` is None for a file that is made, `after` for one that goes."""

    path: Path
    before: bytes | None
    after: bytes | None

    @property
    def is_change(self) -> bool:
        return self.before != self.after

    def diff(self) -> str:
        """For people: secrets are masked."""
        before, after = (_lines(content) for content in (self.before, self.after))
        lines = difflib.unified_diff(before, after, str(self.path), str(self.path), n=2)
        return masked("".join(line if line.endswith("\n") else f"{line}\n" for line in lines))


def masked(text: str) -> str:
    """A diff without what must not be seen over a shoulder, or in a bug report."""
    text = _SECRET_MEMBER.sub(_mask_value, text)
    text = _SECRET_FLAG.sub(rf'\1{MASK}"', text)
    return _WITH_ADDRESS.sub(_mask_address, _BEARER.sub(rf"\1 {MASK}", text))


def _mask_address(found: "re.Match[str]") -> str:
    text, end = found[0], ""
    if text[0] in "\"'" and text[1:].endswith(text[0]):
        text, end = text[:-1], text[0]
    return public_url(text) + end


def _mask_value(found: "re.Match[str]") -> str:
    value = found["value"]
    if "${" in value or value.strip("\"', ") == "":
        return found[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{found['key']}{quote}{MASK}{quote}"


def _lines(content: bytes | None) -> list[str]:
    return [] if content is None else content.decode("utf-8", "replace").splitlines(keepends=True)


def digest(content: bytes | None) -> str | None:
    return None if content is None else hashlib.sha256(content).hexdigest()


def write_file(path: Path, content: bytes | None, *, mode: int | None = None) -> None:
    """All of it or nothing; the mode is kept, and a link still leads there. None removes it. Raises: OSError."""
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
                with suppress(OSError):  # only root may give files away
                    os.fchown(file.fileno(), held.st_uid, held.st_gid)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(draft)
        raise


def make_folders(path: Path) -> list[Path]:
    """Those above a file that were not there, the outermost first. Raises: OSError."""
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(PRIVATE_FOLDER)
    return missing[::-1]


def write_all(changes: Iterable[FileChange]) -> None:
    """If one cannot be written, those before it are put back. Raises: ClientError."""
    done: list[FileChange] = []
    for change in changes:
        try:
            if read_now(change.path) != change.before:
                raise ClientError(f"{change.path} was changed just now, by someone else; try again")
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
        return path.read_bytes()
    except FileNotFoundError:
        return None
