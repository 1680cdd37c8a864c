"""The key for secrets, which all replicas share. Redis stores a check value, so a wrong key is rejected at startup."""

import hmac
import secrets

from emceepee.store.redis.connection.commands import Commands
from emceepee.store.redis.connection.redis_address import RedisAddress
from emceepee.store.redis.connection.redis_faults import unusable_because
from emceepee.store.redis.keys import KeyNames
from emceepee.store.secret_box import KEY_BYTES, SIGNING, VARIABLE, SecretBox, Tampered, decode_key, how_to_make_key
from emceepee.store.store import NoKey, ServerConfiguration, StoreUnavailable, secret_place

_WITHOUT = b"no key"  # stored instead of a check value


class SharedKey:
    """The key from the operator. Without one, `box` is None, and no secret can be stored."""

    def __init__(self, address: RedisAddress, given: str | None) -> None:
        """Raises: StoreUnusable."""
        self._address = address
        key = None if given is None else decode_key(given)
        if given is not None and key is None:
            raise unusable_because(
                address, f"needs {KEY_BYTES} bytes in URL-safe base64 in the variable {VARIABLE}", how_to_make_key()
            )
        self.box = None if key is None else SecretBox(key)

    async def check(self, commands: Commands, names: KeyNames, *, is_alone: bool) -> None:
        """Check that all replicas have the same key. Raises: StoreUnusable.

        `is_alone` means that no other replica is alive, so that state without a key can get one now.
        """
        mine = _WITHOUT if self.box is None else self.box.check_value
        await commands.execute("SET", names.key_check, mine, "NX")
        found = bytes(await commands.execute("GET", names.key_check) or mine)
        if found == _WITHOUT != mine and is_alone:
            await commands.execute("SET", names.key_check, mine)
        elif found == _WITHOUT != mine:
            what = f"is used by replicas without {VARIABLE}"
            raise unusable_because(self._address, what, "Stop them, and set the same key for all replicas")
        else:
            self._compare(found)

    async def verify(self, commands: Commands, names: KeyNames) -> None:
        """Check that Redis has no check value of another key. Raises: StoreUnusable."""
        found = await commands.execute("GET", names.key_check)
        if found is not None and bytes(found) != _WITHOUT:
            self._compare(bytes(found))

    def _compare(self, found: bytes) -> None:
        mine = _WITHOUT if self.box is None else self.box.check_value
        if hmac.compare_digest(found, mine):
            return
        if self.box is None:
            raise unusable_because(
                self._address,
                "has secrets that cannot be read without their key",
                f"Set it in the variable {VARIABLE}; every replica needs the same key",
            )
        raise unusable_because(
            self._address,
            f"has secrets under another key than that in the variable {VARIABLE}",
            "Use the key that the secrets were encrypted with; every replica needs the same key",
        )

    def sealed(self, server: ServerConfiguration) -> bytes | None:
        """Return the encrypted settings, or None if they may be stored without encryption. Raises: NoKey."""
        if self.box is not None:
            return self.box.seal(server.settings, place=(server.principal, server.name))
        if server.holds_secrets:
            raise NoKey(
                f'The server "{server.name}" has settings that may be secret, but Redis stores state without a key.'
                f" The operator has to set {VARIABLE} to the same key on every replica. Nothing was stored."
            )
        return None

    def opened(self, principal: str, name: str, data: bytes) -> bytes:
        if self.box is not None:
            try:
                return self.box.open(data, place=(principal, name))
            except Tampered:
                pass
        raise StoreUnavailable(
            f'The settings of the server "{name}" in Redis at {self._address} cannot be read.'
            " Remove that server and add it again."
        )

    def sealed_secret(self, principal: str, name: str, data: bytes) -> bytes:
        """Raises: NoKey."""
        if self.box is None:
            raise NoKey(
                "A secret cannot be stored, because state is stored in Redis without a key. The operator has to set"
                f" {VARIABLE} to the same key on every replica."
            )
        return self.box.seal(data, place=secret_place(principal, name))

    def opened_secret(self, principal: str, name: str, data: bytes) -> bytes:
        if self.box is not None:
            try:
                return self.box.open(data, place=secret_place(principal, name))
            except Tampered:
                pass
        raise StoreUnavailable(f"A login in Redis at {self._address} cannot be read. Log out, then log in again.")

    async def signing_secret(self, commands: Commands, names: KeyNames) -> bytes:
        if self.box is not None:
            return self.box.derive(SIGNING)
        await commands.execute("SET", names.secret, secrets.token_bytes(KEY_BYTES), "NX")
        return bytes(await commands.execute("GET", names.secret))
