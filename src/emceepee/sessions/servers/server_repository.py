"""The servers that principals added, in the store. Changes that cannot be saved at once are written later."""

from collections.abc import Sequence
from contextlib import suppress

from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError, InvalidArguments, NotAllowed
from emceepee.sessions.servers.stored_configuration import write_configuration
from emceepee.store.store import NameTaken, NoKey, ServerConfiguration, Store, StoreError
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")


class ServerRepository:
    """One per process. Other processes that use the store have their own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._unsaved: dict[tuple[str, str], BackendSpec | None] = {}  # None: removed

    async def read(self, principal: str) -> Sequence[ServerConfiguration]:
        """Raises: StoreError."""
        return await self._store.servers_of(principal)

    async def add(self, principal: str, spec: BackendSpec) -> None:
        """Store the server, unless another process has added one of that name.

        Raises:
            InvalidArguments: another process has.
            NotAllowed: the server may contain a secret, and the store has no key to encrypt it.
        """
        try:
            await self._store.add_server(write_configuration(principal, spec))
        except NameTaken as error:
            raise InvalidArguments(f"{error} Call {call_to('list_servers')}, or choose another name.") from None
        except NoKey as error:
            raise NotAllowed(str(error)) from None
        except StoreError as error:
            self._keep_for_later(principal, spec.name, spec, error)

    async def replace(self, principal: str, spec: BackendSpec, *, is_disabled: bool) -> None:
        """Raises: NotAllowed if the server may contain a secret and the store has no key; EmceepeeError."""
        try:
            await self._store.replace_server(write_configuration(principal, spec, is_disabled=is_disabled))
        except NoKey as error:
            raise NotAllowed(str(error)) from None
        except StoreError as error:
            raise EmceepeeError(f"The change could not be saved, so nothing was changed: {error}") from None

    async def remove(self, principal: str, name: str) -> None:
        self._unsaved.pop((principal, name), None)
        try:
            await self._store.remove_server(principal, name)
        except StoreError as error:
            self._keep_for_later(principal, name, None, error)

    def _keep_for_later(self, principal: str, name: str, spec: BackendSpec | None, error: StoreError) -> None:
        log.warning("servers_not_saved", server=name, error=str(error))
        self._unsaved[principal, name] = spec

    @property
    def has_unsaved(self) -> bool:
        """Whether a change waits for `write_unsaved`."""
        return bool(self._unsaved)

    def unsaved_of(self, principal: str) -> set[str]:
        """Return the names of servers whose local changes are not stored yet."""
        return {name for owner, name in self._unsaved if owner == principal}

    async def write_unsaved(self) -> None:
        """Raises: StoreError."""
        for (principal, name), spec in list(self._unsaved.items()):
            if spec is None:
                await self._store.remove_server(principal, name)
            else:
                with suppress(NameTaken):
                    await self._store.add_server(write_configuration(principal, spec))
            self._unsaved.pop((principal, name), None)
