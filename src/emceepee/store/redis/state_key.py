"""The key for secrets that all replicas share. Redis has a check value of it, so a wrong one is told at the start."""

import hashlib
import hmac
import secrets

from emceepee.store.redis.address import RedisAddress
from emceepee.store.redis.commands import Commands
from emceepee.store.redis.faults import unusable_because
from emceepee.store.redis.keys import KeyNames
from emceepee.store.secret_box import KEY_BYTES, VARIABLE, SecretBox, Tampered, decode_key, how_to_make_key
from emceepee.store.store import NoKey, ServerConfiguration, StoreUnavailable

_WITHOUT = b"no key"  # stands for the check value
_SIGNING = b"emceepee replicas"


class SharedKey:
    """`None`: the operator gave none, and no secret is stored."""

    def __init__(self, address: RedisAddress, given: str | None) -> None:
        """Raises: StoreUnusable."""
        self._address = address
        self._key = None if given is None else decode_key(given)
        if given is not None and self._key is None:
            raise unusable_because(
                address, f"needs {KEY_BYTES} bytes in URL-safe base64 in the variable {VARIABLE}", how_to_make_key()
            )
        self.box = None if self._key is None else SecretBox(self._key)

    async def check(self, commands: Commands, names: KeyNames, *, is_alone: bool) -> None:
        """Whether the others have the same. Raises: StoreUnusable.

        `is_alone`: no other replica is alive, so what was without a key may have one from now on.
        """
        mine = _WITHOUT if self.box is None else self.box.check_value
        await commands.execute("SET", names.key_check, mine, "NX")
        found = bytes(await commands.execute("GET", names.key_check) or mine)
        if hmac.compare_digest(found, mine):
            return
        if found == _WITHOUT and is_alone:
            await commands.execute("SET", names.key_check, mine)
        elif found == _WITHOUT:
            what = f"is used by replicas without {VARIABLE}"
            raise unusable_because(self._address, what, "Stop them, and give all the same")
        elif self.box is None:
            raise unusable_because(
                self._address,
                "has secrets that cannot be read without their key",
                f"Give it in the variable {VARIABLE}; every replica needs the same",
            )
        else:
            raise unusable_because(
                self._address,
                f"has secrets under another key than that in the variable {VARIABLE}",
                "Give the right key; every replica needs the same",
            )

    def sealed(self, server: ServerConfiguration) -> bytes | None:
        """None: it may be stored as it is. Raises: NoKey."""
        if self.box is not None:
            return self.box.seal(server.settings, place=(server.principal, server.name))
        if server.holds_secrets:
            raise NoKey(
                f'The server "{server.name}" has settings that may be secret, and state is kept in Redis without a key.'
                f" The operator has to set {VARIABLE}, the same for every replica. Nothing was stored."
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

    async def signing_secret(self, commands: Commands, names: KeyNames) -> bytes:
        if self._key is not None:
            return hmac.new(self._key, _SIGNING, hashlib.sha256).digest()
        await commands.execute("SET", names.secret, secrets.token_bytes(KEY_BYTES), "NX")
        return bytes(await commands.execute("GET", names.secret))
