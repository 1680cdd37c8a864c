"""The stored form of servers that callers added: the entry that would add them again."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from pydantic import ValidationError

from emceepee.backends.spec import BackendSpec, HttpTarget, Provenance, ServerEntry, StdioTarget, Target, entry_of
from emceepee.sessions.records import UnreadableRecord, read, write
from emceepee.store.store import ServerConfiguration
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.redaction import public_place

log = EventLog("sessions")


def write_configuration(principal: str, spec: BackendSpec, *, is_disabled: bool = False) -> ServerConfiguration:
    entry = entry_of(spec).model_dump(mode="json", exclude_none=True)
    target = spec.target if isinstance(spec.target, HttpTarget) else None
    added = {} if spec.added is None else {"addedBy": spec.added.client, "addedAt": spec.added.at.isoformat()}
    is_public, is_guarded = target is not None and target.is_public, target is not None and target.is_guarded
    return ServerConfiguration(
        principal=principal,
        name=spec.name,
        settings=write(entry=entry, onlyPublicAddresses=is_public, guardedLogins=is_guarded, **added),
        is_disabled=is_disabled,
        holds_secrets=_holds_secrets(spec.target),
    )


def _holds_secrets(target: Target) -> bool:
    """Whether the target has settings that commonly hold secrets."""
    if isinstance(target, HttpTarget):
        return bool(target.headers or target.oauth) or public_place(target.url) != target.url
    return isinstance(target, StdioTarget) and bool(target.env or target.args)


def read_specs(stored: Iterable[ServerConfiguration], *, are_disabled: bool = False) -> dict[str, BackendSpec]:
    """Return the readable servers that are enabled, or disabled ones with `are_disabled`."""
    specs: dict[str, BackendSpec] = {}
    for server in stored:
        if server.is_disabled is not are_disabled:
            continue
        try:
            specs[server.name] = _read_spec(server.settings)
        except (UnreadableRecord, ValidationError, KeyError) as error:
            log.warning("server_unreadable", server=server.name, error=f"{type(error).__name__}")
    return specs


def _read_spec(settings: bytes) -> BackendSpec:
    fields = read(settings)
    spec = ServerEntry.model_validate(fields["entry"]).spec()
    if (at := fields.get("addedAt")) is not None:
        spec = replace(spec, added=Provenance(fields.get("addedBy"), datetime.fromisoformat(at)))
    if not isinstance(spec.target, HttpTarget):
        return spec
    is_public = bool(fields["onlyPublicAddresses"])
    is_guarded = bool(fields.get("guardedLogins", True))  # older versions did not store it
    return replace(spec, target=replace(spec.target, is_public=is_public, is_guarded=is_guarded))
