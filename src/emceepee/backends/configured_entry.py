"""A server as the configuration file writes it: with what names files of this machine, which only the operator may."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from emceepee.backends.http1.tls import TlsContexts, TlsSettings
from emceepee.backends.spec import BackendSpec, HttpTarget, ServerEntry

MOST_TAGS, LONGEST_TAG = 20, 50
LONGEST_IDLE_SECONDS = 86_400.0
LONGEST_PATH = 4096


class TlsEntry(BaseModel):
    """How a server proves who it is, and what it is shown, as the configuration file writes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    ca: str | None = None
    cert: str | None = None
    key: str | None = None
    server_name: str | None = Field(None, min_length=1, max_length=253)
    insecure: bool = False

    @model_validator(mode="after")
    def _fits_together(self) -> "TlsEntry":
        if self.key is not None and self.cert is None:
            raise ValueError("key goes with cert; a file with both is named as cert alone")
        if self.insecure and self.ca is not None:
            raise ValueError("insecure does not go with ca: nothing would be checked against it")
        return self

    def settings(self, folder: Path) -> TlsSettings:
        """Files are looked for from the folder on."""
        ca, cert, key = (file and str(folder / Path(file).expanduser()) for file in (self.ca, self.cert, self.key))
        return TlsSettings(ca=ca, cert=cert, key=key, server_name=self.server_name, insecure=self.insecure)


Tag = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TAG, pattern=r"^\S+$")]


class ConfiguredEntry(ServerEntry):
    """What add_server takes, and more."""

    tls: TlsEntry | None = None
    tags: list[Tag] | None = Field(None, max_length=MOST_TAGS)
    sharing: Literal["per-session", "shared"] = "per-session"
    idleStop: float | None = Field(None, ge=0, le=LONGEST_IDLE_SECONDS)
    record: str | None = Field(None, min_length=1, max_length=LONGEST_PATH)

    @model_validator(mode="after")
    def _tls_has_a_use(self) -> "ConfiguredEntry":
        if self.tls is not None and not (self.url or "").lower().startswith("https://"):
            raise ValueError("tls goes with a url that begins with https://")
        return self

    def spec_in(self, folder: Path) -> BackendSpec:
        """Raises: BadTlsFile: better at the start than when someone calls."""
        spec = replace(
            self.spec(),
            tags=tuple(self.tags or ()),
            is_shared=self.sharing == "shared",
            idle_stop=self.idleStop,
            record=None if self.record is None else str(folder / Path(self.record).expanduser()),
        )
        if self.tls is None or not isinstance(spec.target, HttpTarget):
            return spec
        settings = self.tls.settings(folder)
        TlsContexts().of(settings)
        return replace(spec, target=replace(spec.target, tls=settings))
