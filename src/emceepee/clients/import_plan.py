"""Plan an import: which servers are new, which exist already, and which need another name. Rules only, no I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from emceepee.clients.entry_reader import FoundServer
from emceepee.clients.entry_writer import is_own
from emceepee.clients.sharing_rules import why_shareable
from emceepee.config.secret_references import literal_secrets
from emceepee.wire.json_types import JsonObject

_NOT_IDENTITY = ("disabled", "description", "timeout_ms", "type", "allowedTools", "deniedTools", "sharing")


class ImportOutcome(StrEnum):
    NEW = "new"
    RENAMED = "renamed"
    """Another server has the name."""
    DUPLICATE = "duplicate"
    """The server is already configured, or another client has it as well."""
    OWN = "own"
    """The entry is emceepee itself."""
    UNSUPPORTED = "unsupported"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedServer:
    """A server of an import and its outcome. `name` is its name in emceepee's configuration."""

    found: FoundServer
    outcome: ImportOutcome
    name: str
    words: str = ""
    notes: tuple[str, ...] = ()
    is_running: bool = True  # False if it is disabled in emceepee

    @property
    def is_written(self) -> bool:
        return self.outcome in (ImportOutcome.NEW, ImportOutcome.RENAMED)

    @property
    def is_behind(self) -> bool:
        """Whether the client can drop its entry: emceepee runs the server afterwards, or the client did not use it."""
        return (self.is_written or self.outcome is ImportOutcome.DUPLICATE) and (
            self.is_running or not self.found.is_used
        )


def plan_import(
    found: Iterable[FoundServer], present: Mapping[str, JsonObject], own_urls: Sequence[str] = ()
) -> list[PlannedServer]:
    """`present` maps names to servers in emceepee's configuration; `own_urls` are emceepee's addresses in clients."""
    known = {name: _Known(entry=entry, identity=_identity(entry)) for name, entry in present.items()}
    planned = []
    for server in found:
        plan = _plan(server, known, own_urls)
        planned.append(plan)
        if plan.is_written and server.entry is not None:
            known[plan.name] = _Known(entry=server.entry, identity=_identity(server.entry))
    return planned


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """A server that is or will be in emceepee's configuration."""

    entry: JsonObject
    identity: JsonObject


def _plan(server: FoundServer, known: Mapping[str, _Known], own_urls: Sequence[str]) -> PlannedServer:
    entry = server.entry
    if is_own(server.name, entry or {}, own_urls):
        return PlannedServer(found=server, outcome=ImportOutcome.OWN, name=server.name, words="it is emceepee itself")
    if entry is None:
        return PlannedServer(found=server, outcome=ImportOutcome.UNSUPPORTED, name=server.name, words=server.problem)
    identity = _identity(entry)
    same = next((name for name, other in known.items() if other.identity == identity), None)
    if same is not None:
        words = f'the same server as "{same}"' if same != server.name else "it is there already"
        is_running = known[same].entry.get("disabled") is not True
        if server.is_used and not is_running:
            words += ", and disabled"
        return PlannedServer(
            found=server, outcome=ImportOutcome.DUPLICATE, name=same, words=words, is_running=is_running
        )
    notes, is_running = list(server.notes), entry.get("disabled") is not True
    if secrets := [where.removeprefix(".") for where in literal_secrets(entry, "")]:
        notes.append(
            f"contains a literal secret ({', '.join(secrets)}): ${{env:NAME}} or ${{keyring:SERVICE/NAME}} is safer"
        )
    if (why := why_shareable(entry)) is not None:
        notes.append(f'{why}: with "sharing": "shared", one process is enough for all sessions')
    if server.name not in known:
        return PlannedServer(
            found=server, outcome=ImportOutcome.NEW, name=server.name, notes=tuple(notes), is_running=is_running
        )
    name = _free_name(server, known)
    words = f'another server is named "{server.name}", so this one becomes "{name}"'
    return PlannedServer(
        found=server, outcome=ImportOutcome.RENAMED, name=name, words=words, notes=tuple(notes), is_running=is_running
    )


def _free_name(server: FoundServer, known: Mapping[str, object]) -> str:
    name = f"{server.name}-{server.client.key}"
    number = 2
    while name in known:
        name = f"{server.name}-{server.client.key}-{number}"
        number += 1
    return name


def _identity(entry: JsonObject) -> JsonObject:
    kept = {key: value for key, value in entry.items() if key not in _NOT_IDENTITY and value not in (None, [], {})}
    if "serverUrl" in kept:
        kept["url"] = kept.pop("serverUrl")
    return kept
