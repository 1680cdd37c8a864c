"""A server entry of the configuration file, including settings with local paths, which only the operator may set."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from emceepee.backends.http1.tls_contexts import BadTlsFile, TlsContexts, TlsSettings
from emceepee.backends.spec import (
    DESCRIPTION_CHARS,
    BackendSpec,
    HttpTarget,
    ServerEntry,
    UnusableTarget,
    one_line,
    without_control_characters,
)
from emceepee.config.secret_references import BadReference, References
from emceepee.state.limits import range_of
from emceepee.telemetry.redaction import public_place
from emceepee.validation import mismatches
from emceepee.wire.json_types import JsonObject

MOST_TAGS, LONGEST_TAG = 20, 50
LONGEST_IDLE_SECONDS = 86_400.0
LONGEST_PATH = 4096


class TlsEntry(BaseModel):
    """TLS settings of an entry: how to verify the server, and which certificate to present."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = Field(None, min_length=1, max_length=253)
    insecure: bool = False

    @model_validator(mode="after")
    def _fits_together(self) -> "TlsEntry":
        if self.key is not None and self.cert is None:
            raise ValueError("key requires cert; name a file with both as cert alone")
        if self.insecure and self.ca is not None:
            raise ValueError("insecure does not go with ca: nothing would be checked against it")
        return self

    def settings(self, folder: Path) -> TlsSettings:
        """Return the settings with file paths resolved relative to `folder`."""
        ca, cert, key = (file and str(folder / Path(file).expanduser()) for file in (self.ca, self.cert, self.key))
        return TlsSettings(ca=ca, cert=cert, key=key, server_name=self.server_name, insecure=self.insecure)


Tag = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TAG, pattern=r"^\S+$")]


def _idle_seconds(seconds: float) -> float:
    allowed = range_of("idle_stop_seconds")
    if not allowed.allows(seconds):
        raise ValueError(f"must be 0 or at least {allowed.least:g}")
    return seconds


class ConfiguredEntry(ServerEntry):
    """An entry with all settings of add_server, plus the settings that only the file supports."""

    tls: TlsEntry | None = None
    tags: list[Tag] | None = Field(None, max_length=MOST_TAGS)
    sharing: Literal["per-session", "shared"] = "per-session"
    idleStop: Annotated[float, AfterValidator(_idle_seconds)] | None = Field(None, ge=0, le=LONGEST_IDLE_SECONDS)
    record: Annotated[str, AfterValidator(without_control_characters)] | None = Field(
        None, min_length=1, max_length=LONGEST_PATH
    )

    @model_validator(mode="after")
    def _tls_has_a_use(self) -> "ConfiguredEntry":
        if self.tls is not None and not (self.url or "").lower().startswith("https://"):
            raise ValueError("tls goes with a url that begins with https://")
        return self

    def spec_in(self, folder: Path) -> BackendSpec:
        """Raises: BadTlsFile, OSError, RuntimeError, ValueError: better at the start than when someone calls."""
        record = None if self.record is None else str(folder / Path(self.record).expanduser())
        if record is not None:
            os.fsencode(record)  # JSON can contain an unpaired surrogate, which is invalid in a path
        spec = replace(
            self.spec(),
            tags=tuple(self.tags or ()),
            is_shared=self.sharing == "shared",
            idle_stop=self.idleStop,
            record=record,
        )
        if self.tls is None or not isinstance(spec.target, HttpTarget):
            return spec
        settings = self.tls.settings(folder)
        TlsContexts().of(settings)
        return replace(spec, target=replace(spec.target, tls=settings))


_PRIVATE = frozenset(name for name, field in ConfiguredEntry.model_fields.items() if not field.repr)


class ReportMistake(Protocol):
    """Report a mistake under its key, with the failed reference if a reference caused it."""

    def __call__(self, key: str, message: str, /, *, reference: BadReference | None = None) -> None: ...


def read_entry(entry: JsonObject, key: str, references: References, report: ReportMistake) -> BackendSpec | None:
    """Return the server that an entry describes. If the entry has mistakes, report each one and return None."""
    unresolved: set[str] = set()

    def report_reference(where: str, error: BadReference) -> None:
        unresolved.add(where)
        report(where, str(error), reference=error)

    resolved = references.resolve_all(entry, key, report_reference)
    try:
        read = ConfiguredEntry.model_validate(resolved)
    except ValidationError as error:
        for path, code, words in mismatches(error, ConfiguredEntry, private=_PRIVATE):
            where = key + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
            # A validator saw the unresolved reference instead of its value, so its error may be wrong.
            if where not in unresolved and not (unresolved and code is None):
                report(where, words)
        return None
    if unresolved:
        return None
    try:
        return read.spec_in(references.folder)
    except BadTlsFile as error:
        report(f"{key}.tls.{error.setting}", str(error))
    except (OSError, RuntimeError, ValueError) as error:
        report(key, f"a path in it cannot be used: {error}")
    return None


def unusable_spec(name: str, entry: JsonObject, reason: str) -> BackendSpec:
    """Return a placeholder for a server whose entry cannot be used, with its details as written."""
    url = next((entry[key] for key in ("url", "serverUrl") if isinstance(entry.get(key), str)), None)
    command = entry.get("command")
    label = public_place(url) if url is not None else f"stdio://{command}" if isinstance(command, str) else ""
    description, tags = entry.get("description"), entry.get("tags")
    tags = tags if isinstance(tags, list) else []
    return BackendSpec(
        name=name,
        target=UnusableTarget(label=label, reason=reason),
        description=one_line(description, DESCRIPTION_CHARS) or None if isinstance(description, str) else None,
        tags=tuple(tag for tag in tags[:MOST_TAGS] if isinstance(tag, str) and len(tag) <= LONGEST_TAG),
    )
