"""Servers and logins in Redis, which all replicas share. Each is told when another changes one."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from emceepee.store.redis.codec import read_moment, write_moment
from emceepee.store.redis.commands import Call, Commands, Unknown
from emceepee.store.redis.keys import KeyNames
from emceepee.store.redis.replica_scripts import CHANGE_SHARED
from emceepee.store.redis.state_key import SharedKey
from emceepee.store.redis.wire import Word
from emceepee.store.store import NameTaken, ServerConfiguration, StoredLogin

PLAIN, SEALED = b"p", b"s"


class Shared:
    """`teller` is who tells the others, so that it does not hear of its own changes."""

    def __init__(self, commands: Commands, names: KeyNames, key: SharedKey, teller: str) -> None:
        self._commands, self._names, self._key, self._teller = commands, names, key, teller

    async def revision(self) -> int:
        return int(await self._execute("GET", self._names.revision) or 0)

    async def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        flat = await self._execute("HGETALL", self._names.servers(principal))
        fields = list(zip(flat[::2], flat[1::2], strict=True)) if isinstance(flat, list) else list(flat.items())
        fields.sort(key=lambda field: int(field[1].partition(b" ")[0]))
        return [self._read_server(principal, name.decode(), data) for name, data in fields]

    async def add_server(self, server: ServerConfiguration) -> None:
        """Raises: NameTaken, NoKey."""
        if not await self._change_server("add", server):
            raise NameTaken(f'A server called "{server.name}" was added already.')

    async def replace_server(self, server: ServerConfiguration) -> None:
        """Raises: NoKey."""
        await self._change_server("replace", server)

    async def remove_server(self, principal: str, name: str) -> bool:
        return await self._change(self._names.servers(principal), "remove", name)

    async def logins(self) -> Sequence[StoredLogin]:
        flat = await self._execute("HGETALL", self._names.logins)
        fields = zip(flat[::2], flat[1::2], strict=True) if isinstance(flat, list) else flat.items()
        found = [_read_login(digest, data) for digest, data in fields]
        return sorted(found, key=lambda login: (login.until, login.digest))

    async def add_login(self, login: StoredLogin) -> None:
        data = write_moment(login.until) + b" " + login.principal.encode()
        await self._change(self._names.logins, "put", login.digest, data)

    async def end_login(self, digest: bytes) -> bool:
        return await self._change(self._names.logins, "remove", digest)

    async def forget_logins(self, now: datetime) -> None:
        """Those that are over: nobody has to be told, as everybody sees that they are."""
        if over := [login.digest for login in await self.logins() if login.until <= now]:
            await self._execute("HDEL", self._names.logins, *over)

    async def announce(self) -> None:
        await self._execute("INCR", self._names.revision)
        await self._execute("PUBLISH", self._names.channel, self._teller)

    async def _change_server(self, how: str, server: ServerConfiguration) -> bool:
        data = self._key.sealed(server)
        flags = b"%s%d%d " % (PLAIN if data is None else SEALED, server.is_disabled, server.holds_secrets)
        value = flags + (server.settings if data is None else data)
        return await self._change(self._names.servers(server.principal), how, server.name, value, server.principal)

    def _read_server(self, principal: str, name: str, data: bytes) -> ServerConfiguration:
        _, flags, rest = data.split(b" ", 2)
        is_sealed = flags[:1] == SEALED
        return ServerConfiguration(
            principal=principal,
            name=name,
            settings=self._key.opened(principal, name, rest) if is_sealed else rest,
            is_disabled=flags[1:2] == b"1",
            holds_secrets=flags[2:3] == b"1",
        )

    async def _change(self, hash_name: str, how: str, field: Word, value: Word = "", principal: str = "") -> bool:
        names = self._names
        keys = [hash_name, names.revision, names.positions, names.principals]
        call = Call(CHANGE_SHARED, keys, [names.channel, self._teller, how, field, value, principal])
        try:
            (changed,) = await self._commands.run_all([call])
        except Unknown as error:
            raise error.because from None
        return bool(changed)

    async def _execute(self, *words: Word) -> Any:
        try:
            return await self._commands.execute(*words)
        except Unknown as error:
            raise error.because from None


def _read_login(digest: bytes, data: bytes) -> StoredLogin:
    until, _, principal = data.partition(b" ")
    return StoredLogin(digest, principal.decode(), read_moment(until))
