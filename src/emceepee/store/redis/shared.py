"""Servers and logins in Redis, which all replicas share. Each change notifies the other replicas."""

import hmac
from collections.abc import Sequence
from datetime import datetime

from emceepee.store.redis.connection.commands import Commands, run_command, run_script
from emceepee.store.redis.connection.redis_connection import Word
from emceepee.store.redis.keys import KeyNames
from emceepee.store.redis.scripts.replica_scripts import CHANGE_SHARED
from emceepee.store.redis.session_codec import read_moment, write_moment
from emceepee.store.redis.state_key import SharedKey
from emceepee.store.secret_box import login_proof
from emceepee.store.store import NameTaken, ServerConfiguration, StoredLogin
from emceepee.telemetry.logs import EventLog

log = EventLog("store")
PLAIN, SEALED = b"p", b"s"
SEAL_COMMAND = "emceepee state seal"
_DIVIDER = b"\n"  # before the proof of a login


class SharedState:
    """Servers and logins. `teller` is the sender of notifications, so that a replica can ignore its own."""

    def __init__(self, commands: Commands, names: KeyNames, key: SharedKey, teller: str) -> None:
        self._commands, self._names, self._key, self._teller = commands, names, key, teller

    async def revision(self) -> int:
        return int(await run_command(self._commands, "GET", self._names.revision) or 0)

    async def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        flat = await run_command(self._commands, "HGETALL", self._names.servers(principal))
        fields = list(zip(flat[::2], flat[1::2], strict=True)) if isinstance(flat, list) else list(flat.items())
        if self._key.box is not None:
            if plain := [name.decode(errors="replace") for name, data in fields if not is_sealed(data)]:
                log.warning("plain_servers_refused", principal=principal, servers=plain, to_accept=SEAL_COMMAND)
            fields = [(name, data) for name, data in fields if is_sealed(data)]
        fields.sort(key=lambda field: int(field[1].partition(b" ")[0]))
        return [self._read_server(principal, name.decode(), data) for name, data in fields]

    async def add_server(self, server: ServerConfiguration) -> None:
        """Raises: NameTaken, NoKey.

        With a key, an entry without encryption counts as missing.
        """
        if not await self._change_server("add" if self._key.box is None else "add over plain", server):
            raise NameTaken(f'A server called "{server.name}" was added already.')

    async def replace_server(self, server: ServerConfiguration) -> None:
        """Raises: NoKey."""
        await self._change_server("replace", server)

    async def remove_server(self, principal: str, name: str) -> bool:
        return await self._change(self._names.servers(principal), "remove", name)

    async def logins(self) -> Sequence[StoredLogin]:
        found = await self._read_logins()
        valid = [login for login in found.values() if login is not None]
        if len(valid) < len(found):
            count = len(found) - len(valid)
            log.warning("logins_refused", count=count, reason="they were not stored with the key")
        return sorted(valid, key=lambda login: (login.until, login.digest))

    async def add_login(self, login: StoredLogin) -> None:
        data = write_moment(login.until) + b" " + login.principal.encode()
        if self._key.box is not None:
            data += _DIVIDER + login_proof(self._key.box, login).hex().encode()
        await self._change(self._names.logins, "put", login.digest, data)

    async def end_login(self, digest: bytes) -> bool:
        return await self._change(self._names.logins, "remove", digest)

    async def forget_logins(self, now: datetime) -> None:
        """Delete expired and refused logins. This notifies no process, because none accepts them."""
        found = await self._read_logins()
        if over := [digest for digest, login in found.items() if login is None or login.until <= now]:
            await run_command(self._commands, "HDEL", self._names.logins, *over)

    async def announce(self) -> None:
        await run_command(self._commands, "INCR", self._names.revision)
        await run_command(self._commands, "PUBLISH", self._names.channel, self._teller)

    async def _change_server(self, how: str, server: ServerConfiguration) -> bool:
        data = self._key.sealed(server)
        flags = b"%s%d%d " % (PLAIN if data is None else SEALED, server.is_disabled, server.holds_secrets)
        value = flags + (server.settings if data is None else data)
        return await self._change(self._names.servers(server.principal), how, server.name, value, server.principal)

    def _read_server(self, principal: str, name: str, data: bytes) -> ServerConfiguration:
        _, flags, rest = data.split(b" ", 2)
        return ServerConfiguration(
            principal=principal,
            name=name,
            settings=self._key.opened(principal, name, rest) if is_sealed(data) else rest,
            is_disabled=flags[1:2] == b"1",
            holds_secrets=flags[2:3] == b"1",
        )

    async def _read_logins(self) -> dict[bytes, StoredLogin | None]:
        """Return all logins by digest; None for a login that no process with the key has stored."""
        flat = await run_command(self._commands, "HGETALL", self._names.logins)
        fields = zip(flat[::2], flat[1::2], strict=True) if isinstance(flat, list) else flat.items()
        return {digest: self._read_login(digest, data) for digest, data in fields}

    def _read_login(self, digest: bytes, data: bytes) -> StoredLogin | None:
        until, _, rest = data.partition(b" ")
        principal, _, proof = rest.partition(_DIVIDER)
        try:
            login = StoredLogin(digest, principal.decode(), read_moment(until))
        except (ValueError, OverflowError):  # no emceepee process wrote this entry
            return None
        box = self._key.box
        is_ours = box is None or hmac.compare_digest(login_proof(box, login).hex().encode(), proof)
        return login if is_ours else None

    async def _change(self, hash_name: str, how: str, field: Word, value: Word = "", principal: str = "") -> bool:
        names = self._names
        keys = [hash_name, names.revision, names.positions, names.principals]
        arguments = [names.channel, self._teller, how, field, value, principal]
        return bool(await run_script(self._commands, CHANGE_SHARED, keys, *arguments))


def is_sealed(data: bytes) -> bool:
    """Whether the entry of a server is encrypted. A malformed one is not."""
    parts = data.split(b" ", 2)
    return len(parts) == 3 and parts[0].isdigit() and parts[1][:1] == SEALED
