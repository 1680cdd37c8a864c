"""TLS contexts: the trusted CAs, and our client certificates. Changed files are read again."""

import logging
import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

logger = logging.getLogger(__name__)
Signature = tuple[tuple[int, int, int], ...]  # of each file: inode, size, modification time


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The TLS settings of one server. `ca`, `cert`, and `key` are files.

    `ca` replaces the system's CAs, or is trusted in addition to them if `is_added` is set.
    """

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = None
    insecure: bool = False
    is_added: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        return tuple(file for file in (self.ca, self.cert, self.key) if file is not None)


class BadTlsFile(Exception):
    """A file is unusable. `setting` is the setting that names it, and the text describes the problem."""

    def __init__(self, setting: str, words: str) -> None:
        super().__init__(words)
        self.setting = setting


class TlsContexts:
    """Caches a context for each distinct TlsSettings. The CAs in `bundle` are trusted in addition to the system's."""

    def __init__(self, bundle: Path | None = None) -> None:
        self._bundle = bundle
        self._made: dict[TlsSettings, tuple[Signature, ssl.SSLContext]] = {}

    def of(self, settings: TlsSettings | None) -> ssl.SSLContext:
        """Return the context for the settings. If changed files are invalid, the previous context stays in use.

        Raises: BadTlsFile, unless the files were valid before.
        """
        settings = settings or TlsSettings()
        files = settings.files if self._bundle is None else (*settings.files, str(self._bundle))
        signature = _signature(files)
        known = self._made.get(settings)
        if known is not None and known[0] == signature:
            return known[1]
        try:
            context = _make_context(settings, self._bundle)
        except BadTlsFile as error:
            if known is None:
                raise
            logger.warning("the files for TLS changed and cannot be used: %s", error)
            context = known[1]
        self._made[settings] = signature, context
        return context


def _signature(files: tuple[str, ...]) -> Signature:
    found = []
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            found.append((0, 0, 0))
        else:
            found.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def _make_context(settings: TlsSettings, bundle: Path | None) -> ssl.SSLContext:
    is_alone = settings.ca is not None and not settings.is_added
    with _blaming("ca", settings.ca):
        context = ssl.create_default_context(cafile=settings.ca if is_alone else None)
        if settings.ca is not None and not is_alone:
            context.load_verify_locations(settings.ca)
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif settings.ca is not None:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # allows `ca` to be the server's own certificate
    if bundle is not None and not is_alone and not settings.insecure:
        with _blaming("bundle", str(bundle)):
            context.load_verify_locations(bundle)
    if settings.cert is not None:
        with _blaming("cert", settings.cert):
            Path(settings.cert).open("rb").close()
        with _blaming("cert" if settings.key is None else "key", settings.key or settings.cert):
            context.load_cert_chain(settings.cert, settings.key, password=_refuse_to_ask)
    return context


@contextmanager
def _blaming(setting: str, file: str | None) -> Iterator[None]:
    try:
        yield
    except ssl.SSLError as error:
        raise BadTlsFile(setting, _words(setting, str(file), error)) from None
    except (OSError, ValueError) as error:
        raise BadTlsFile(setting, f"{file}: {getattr(error, 'strerror', None) or error}") from None


def _words(setting: str, file: str, error: ssl.SSLError) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{file} contains a key that does not match the certificate"
    expected = {"cert": "a certificate and its key", "key": "the certificate's key"}.get(setting, "certificates of CAs")
    return f"{file}: expected {expected} in PEM form ({error.reason or error})"


def _refuse_to_ask() -> NoReturn:
    """Reject an encrypted key. Otherwise, OpenSSL would prompt for the password on the terminal."""
    raise ValueError("the key is encrypted; specify a file with an unencrypted key")
