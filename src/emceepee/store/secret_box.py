"""Encryption of stored secrets, with a key from a file beside the state file or from the operator.

The key has 32 bytes. The package `cryptography` is slow to import, so the first call of `seal` or `open` imports it.
Checking for the right key works without it.
"""

import base64
import binascii
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from emceepee.paths import PRIVATE_FILE
from emceepee.store.store import StoredLogin, StoreUnusable
from emceepee.store.timestamps import microseconds

KEY_BYTES, NONCE_BYTES = 32, 12
VARIABLE = "EMCEEPEE_STATE_KEY"
SIGNING = b"emceepee replicas"  # purpose of the secret that signs requests between replicas
_CHECKED_TEXT = b"emceepee state key"
_PROVEN = b"emceepee proof "


class Tampered(ValueError):
    """The data was sealed with another key or for another place, or was changed later."""


class SecretBox:
    """Encrypts with AES-GCM. Data sealed for one place cannot be opened for another."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, plain: bytes, *, place: Sequence[str]) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(NONCE_BYTES)
        return nonce + AESGCM(self._key).encrypt(nonce, plain, _bound(place))

    def open(self, sealed: bytes, *, place: Sequence[str]) -> bytes:
        """Raises: Tampered."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._key).decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], _bound(place))
        except (InvalidTag, ValueError) as error:
            raise Tampered("not sealed here") from error

    def prove(self, *facts: str) -> bytes:
        """Return a MAC of the facts: only a process with the key can have stored them."""
        return hmac.new(self._key, _PROVEN + _bound(facts), hashlib.sha256).digest()

    def derive(self, purpose: bytes) -> bytes:
        """Return a secret for one purpose, the same in every process with this key."""
        return hmac.new(self._key, purpose, hashlib.sha256).digest()

    @property
    def check_value(self) -> bytes:
        """A value that identifies the key without revealing it."""
        return self.derive(_CHECKED_TEXT)


def login_proof(box: SecretBox, login: StoredLogin) -> bytes:
    """Return the MAC that is stored with a login, so that write access to the state alone cannot make one."""
    return box.prove("login", login.digest.hex(), login.principal, str(microseconds(login.until)))


class StateKey:
    """The source of the key of a state file. Errors name the source, never the key."""

    def __init__(self, state_file: Path, given: str | None) -> None:
        self._state_file, self._given = state_file, given
        self._file = state_file.with_name(f"{state_file.name}.key")
        self.origin = f"the file {self._file}" if given is None else f"the variable {VARIABLE}"

    def load(self) -> SecretBox | None:
        """Return the box of the key, or None if there is no key yet. Raises: StoreUnusable, OSError."""
        if self._given is not None:
            return self._box(self._given)
        try:
            descriptor = os.open(self._file, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor) as file:
            _keep_private(file.fileno())
            return self._box(file.read(1024))

    def make(self) -> SecretBox:
        """Return the box of the existing key, or of a new key in a file. The caller must have exclusive access."""
        if (box := self.load()) is not None:
            return box
        text = base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode()
        _write_whole(self._file, text + "\n")
        return self._box(text)

    def verify(self, expected: bytes | None) -> SecretBox | None:
        """Load the key and compare it with the check value `expected`. Return None if both are missing.

        Raises: StoreUnusable, OSError.
        """
        box = self.load()
        if expected is None:
            return box
        if box is None:
            raise StoreUnusable(
                f"The secrets in the state file {self._state_file} cannot be read: {self.origin} is missing. Put it"
                f" back, pass the key in {VARIABLE}, or move the state file away and start with a new one."
            )
        if not hmac.compare_digest(box.check_value, expected):
            raise StoreUnusable(
                f"The secrets in the state file {self._state_file} were encrypted under another key than that in"
                f" {self.origin}. Use that key, or move the state file away and start with a new one."
            )
        return box

    def _box(self, text: str) -> SecretBox:
        if (key := decode_key(text)) is not None:
            return SecretBox(key)
        raise StoreUnusable(
            f"The key of the state file {self._state_file} in {self.origin} is not {KEY_BYTES} bytes in URL-safe"
            f" base64. {how_to_make_key()}"
        )


def decode_key(text: str) -> bytes | None:
    """Return the key, or None if the text is not 32 bytes in URL-safe base64."""
    with suppress(ValueError, binascii.Error):
        text = text.strip()
        key = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if len(key) == KEY_BYTES:
            return key
    return None


def how_to_make_key() -> str:
    return (
        "Make one with: python3 -c 'import base64, os;"
        f" print(base64.urlsafe_b64encode(os.urandom({KEY_BYTES})).decode())'"
    )


def _bound(place: Sequence[str]) -> bytes:
    return json.dumps(list(place)).encode()


def _keep_private(descriptor: int) -> None:
    found = os.fstat(descriptor)
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
        os.fchmod(descriptor, PRIVATE_FILE)


def _write_whole(file: Path, text: str) -> None:
    """Write the file atomically: after a crash, it has all of the text or is unchanged."""
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        with os.fdopen(descriptor, "w") as opened:
            opened.write(text)
            opened.flush()
            os.fsync(opened.fileno())
        os.replace(draft, file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
