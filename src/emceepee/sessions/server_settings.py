"""Servers that callers added, as the store keeps them: the entry that would add them again."""

from collections.abc import Iterable
from dataclasses import replace

from pydantic import ValidationError

from emceepee.backends.spec import BackendSpec, HttpTarget, ServerEntry, StdioTarget, entry_of
from emceepee.sessions.records import UnreadableRecord, read, write
from emceepee.store.store import ServerConfiguration
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.redaction import public_url

log = EventLog("sessions")


def write_configuration(principal: str, spec: BackendSpec, *, is_disabled: bool = False) -> ServerConfiguration:
    entry = entry_of(spec).model_dump(mode="json", exclude_none=True)
    is_public = isinstance(spec.target, HttpTarget) and spec.target.is_public
    return ServerConfiguration(
        principal=principal,
        name=spec.name,
        settings=write(entry=entry, onlyPublicAddresses=is_public),
        is_disabled=is_disabled,
        holds_secrets=_holds_secrets(spec.target),
    )


def _holds_secrets(target: HttpTarget | StdioTarget) -> bool:
    """Whether it has anything in which people put secrets."""
    if isinstance(target, HttpTarget):
        return bool(target.headers or target.oauth) or public_url(target.url) != target.url
    return bool(target.env or target.args)


def read_specs(stored: Iterable[ServerConfiguration], *, are_disabled: bool = False) -> dict[str, BackendSpec]:
    """Those that are enabled, or disabled, and can be read."""
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
    if fields["onlyPublicAddresses"] and isinstance(spec.target, HttpTarget):
        return replace(spec, target=replace(spec.target, is_public=True))
    return spec
