"""One frozen Config from file, environment and flags, and errors that name file, key and what was expected."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import ValidationError

from emceepee.backends.configured_entry import ConfiguredEntry
from emceepee.backends.http1.egress import EgressSettings
from emceepee.backends.http1.tls import BadTlsFile
from emceepee.backends.spec import RESERVED_NAME, BackendSpec, HttpTarget, root_uri
from emceepee.guard.gate import LOOPBACK_NAMES
from emceepee.guard.identity import LOCAL
from emceepee.json_types import JsonObject
from emceepee.own_files import (
    CONFIG_VARIABLE,
    KEYRING,
    NATIVE_ELICITATION,
    NOTICES,
    SECRETS,
    STATE_VARIABLE,
    SYNCS,
    TOKEN_VARIABLE,
    config_source,
)
from emceepee.secret_references import BadReference, References, literal_secrets
from emceepee.state.limits import Limits, range_of
from emceepee.store.location import KEY_VARIABLE, BadLocation, StateLocation, parse_location
from emceepee.store.platform_keyring import NoKeyring, check_keyring
from emceepee.surface import SURFACES, Surface
from emceepee.telemetry.logs import FORMATS, LEVELS
from emceepee.telemetry.settings import TelemetrySettings
from emceepee.validation import mismatches

# What other programs call the same transports.
_TYPE_ALIASES = {"streamable-http": "http", "streamableHttp": "http", "streamable_http": "http", "local": "stdio"}
_TOP_KEYS = (
    *("servers", "mcpServers", "mcpClients", "limits", "roots"),
    *("notices", "nativeElicitation", "surface", "searchVectors"),
    *("logLevel", "logFormat", "state", "stateSync", "secrets"),
)
SCHEMA_KEY = "$schema"  # for editors
_PRIVATE = frozenset(name for name, field in ConfiguredEntry.model_fields.items() if not field.repr)


class ConfigError(Exception):
    """The configuration cannot be used; the text says where and what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpConfig:
    """What `emceepee serve` listens on, and whom it admits."""

    host: str = "127.0.0.1"
    port: int = 8080
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)  # principal by token
    allow_hosts: tuple[str, ...] = ()
    allow_origins: tuple[str, ...] = ()
    allow_commands: bool = False
    allow_urls: tuple[str, ...] = ()
    require_session: bool = False
    insecure: bool = False
    oauth_issuer: str | None = None
    oauth_resource: str | None = None
    oauth_scopes: tuple[str, ...] = ()
    public_url: str | None = None  # where browsers and authorization servers reach this server
    has_console: bool = True
    shares_port: bool = False  # with other processes that listen on it, too

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK_NAMES

    @property
    def asks_for_proof(self) -> bool:
        return bool(self.tokens) or self.oauth_issuer is not None

    @property
    def sole_principal(self) -> str | None:
        """The one that every caller is; None if there can be several."""
        principals = set(self.tokens.values()) or {LOCAL}
        return None if self.oauth_issuer or len(principals) > 1 else principals.pop()

    def check(self) -> None:
        """Raises: ConfigError if it would be open to strangers."""
        if not (self.is_loopback or self.asks_for_proof or self.insecure):
            raise ConfigError(
                f"listening on {self.host} lets other machines in: set a token (--token or {TOKEN_VARIABLE}) or "
                "--oauth-issuer, or say --insecure"
            )
        if self.oauth_issuer and not self.insecure and not _is_private_to_us(self.oauth_issuer):
            raise ConfigError("--oauth-issuer must begin with https://: else anyone on the way could choose the keys")
        if self.public_url is not None and not _is_private_to_us(self.public_url):
            raise ConfigError("--public-url must begin with https://: browsers bring the codes of logins there")
        if self.oauth_issuer and not self.oauth_resource:
            raise ConfigError("--oauth-issuer needs --oauth-resource, the public URL of this server's /mcp")


def _is_private_to_us(url: str) -> bool:
    """Whether what comes from there cannot have been changed on the way."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname in LOOPBACK_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaConfig:
    """How the replicas that share this one's state reach it."""

    listen: tuple[str, int] | None = None  # None: a Unix socket, or a free port on loopback, as the state is shared
    tls_files: tuple[Path, ...] = ()  # certificate, key and, if it is not a public one, the authority of all replicas
    slot: int | None = None  # None: the lowest that is free

    @classmethod
    def of(cls, listen: str | None, tls: str | None, slot: int | None) -> "ReplicaConfig":
        """As it is written on the command line. Raises: ConfigError."""
        files = tuple(Path(part).expanduser() for part in tls.split(",")) if tls else ()
        if files and (len(files) not in (2, 3) or listen is None):
            raise ConfigError("--replica-tls: expected CERT,KEY or CERT,KEY,CA, together with --replica-listen")
        return cls(listen=None if listen is None else _replica_address(listen), tls_files=files, slot=slot)


def _replica_address(text: str) -> tuple[str, int]:
    parts = urlsplit(f"//{text}")
    try:
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or port is None or host in ("0.0.0.0", "::"):
        raise ConfigError(
            f"--replica-listen: expected the HOST:PORT by which the other replicas reach this one, found {text!r}"
        )
    return host, port


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything that can be set."""

    servers: tuple[BackendSpec, ...] = ()
    limits: Limits = field(default_factory=Limits)
    roots: tuple[str, ...] = ()  # offered to every server that has none of its own
    notices: str = "all"
    native_elicitation: str = NATIVE_ELICITATION[0]
    search_vectors: Path | None = None  # word vectors for codemode_search
    surface: Surface = Surface.FULL  # of callers that ask for none
    has_codemode: bool = True
    log_level: str = "info"
    log_format: str = "text"
    log_file: Path | None = None
    link_file: Path | None = None  # holds the newest link to the console
    http: HttpConfig = field(default_factory=HttpConfig)
    replicas: ReplicaConfig = field(default_factory=ReplicaConfig)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    console_port: int | None = None  # of the console beside a caller on standard input; None: there is none
    state: str | None = None  # as it is written in the file: memory, sqlite or sqlite:PATH; None: nothing is said
    state_sync: str = SYNCS[0]
    secrets: str = SECRETS[0]
    location: StateLocation = field(default_factory=StateLocation)  # what that and flags and variables come to
    session_name: str | None = None  # of the session that a caller on standard input takes up
    egress: EgressSettings = field(default_factory=EgressSettings)
    ignored: tuple[str, ...] = ()  # keys that mean nothing here, for a warning
    spelled_out: tuple[str, ...] = ()  # keys under which a secret seems to stand itself, for a hint

    @property
    def unverified(self) -> list[str]:
        """The servers whose certificates nobody checks, for a warning."""
        targets = {spec.name: spec.target for spec in self.servers}
        return [
            name
            for name, target in targets.items()
            if isinstance(target, HttpTarget) and target.tls is not None and target.tls.insecure
        ]


def load(path: str | None, environment: Mapping[str, str] = os.environ) -> Config:
    """Read `path`, else what EMCEEPEE_CONFIG holds (inline JSON, a path, or nothing), else the user's own file, if any.

    Raises:
        ConfigError
    """
    source = config_source(path, environment)
    if source is None:
        return Config()
    if isinstance(source, str):
        return parse(source, source=CONFIG_VARIABLE, references=References(environment=environment))
    return _load_file(source, environment)


def find_file(path: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """The file that `load` reads; None if there is none to read."""
    source = config_source(path, environment)
    return str(source) if isinstance(source, Path) else None


def _load_file(path: Path, environment: Mapping[str, str]) -> Config:
    references = References(environment=environment, folder=path.absolute().parent)
    return parse(_read(path), source=str(path), references=references)


def parse(text: str, *, source: str, references: References) -> Config:
    """A Config from JSON text, which may have comments; `source` is its name in errors. Raises: ConfigError."""
    try:
        document = json.loads(text)
    except ValueError as error:
        if not text.strip():
            raise ConfigError(f"{source}: not valid JSON: {error}") from None
        document = _read_with_comments(text, source)
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: expected a JSON object with servers or mcpServers, found {_kind(document)}")
    spelled_out = [found for key, entry in _entries(document, source) for found in literal_secrets(entry, key)]
    document = _resolved(document, source, "", references)
    servers: dict[str, BackendSpec] = {}
    ignored = [key for key in document if key not in _TOP_KEYS and key != SCHEMA_KEY]
    for key, entry in _entries(document, source):
        spec = _spec(key, entry, source, ignored, references.folder)
        if spec is None:
            continue
        if spec.name in servers:
            raise ConfigError(f'{source}: {key}: the name "{spec.name}" is used twice; names must differ')
        servers[spec.name] = spec
    limits = _limits(document.get("limits", {}), source)
    _check_timeouts(servers.values(), limits, source)
    return Config(
        servers=tuple(servers.values()),
        limits=limits,
        roots=_roots(document.get("roots", []), source),
        notices=_choice(document, "notices", NOTICES, "all", source),
        native_elicitation=_choice(document, "nativeElicitation", NATIVE_ELICITATION, NATIVE_ELICITATION[0], source),
        search_vectors=_existing_file(document, "searchVectors", source, references.folder),
        surface=Surface(_choice(document, "surface", SURFACES, SURFACES[0], source)),
        log_level=_choice(document, "logLevel", LEVELS, "info", source),
        log_format=_choice(document, "logFormat", FORMATS, "text", source),
        state=_text(document, "state", source),
        state_sync=_choice(document, "stateSync", SYNCS, SYNCS[0], source),
        secrets=_choice(document, "secrets", SECRETS, SECRETS[0], source),
        ignored=tuple(ignored),
        spelled_out=tuple(spelled_out),
    )


def _read_with_comments(text: str, source: str) -> Any:
    from emceepee.clients import jsonc  # here: most files have none
    from emceepee.clients.faults import BadDocument

    try:
        return jsonc.read(text)
    except BadDocument as error:
        raise ConfigError(f"{source}: {error}") from None


def _check_timeouts(servers: Iterable[BackendSpec], limits: Limits, source: str) -> None:
    for spec in servers:
        if spec.timeout is not None and spec.timeout > limits.longest_call_seconds:
            most = f"{limits.longest_call_seconds * 1000:.10g} (limits.longest_call_seconds)"
            raise ConfigError(f"{source}: {spec.name}.timeout_ms: may be at most {most}")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


def _entries(document: JsonObject, source: str) -> list[tuple[str, JsonObject]]:
    """Every server entry with the key under which it stands, from any of the three shapes."""
    found: list[tuple[str, Any]] = []
    listed = document.get("servers", [])
    if isinstance(listed, dict):  # as some editors write it
        found += [(f"servers.{name}", _named(name, entry)) for name, entry in listed.items()]
    elif isinstance(listed, list):
        found += [(f"servers[{index}]", entry) for index, entry in enumerate(listed)]
    else:
        raise ConfigError(f"{source}: servers: expected a list, found {_kind(listed)}")
    for shape in ("mcpServers", "mcpClients"):
        mapped = document.get(shape, {})
        if not isinstance(mapped, dict):
            raise ConfigError(f"{source}: {shape}: expected an object of names and servers, found {_kind(mapped)}")
        found += [(f"{shape}.{name}", _named(name, entry)) for name, entry in mapped.items()]
    for key, entry in found:
        if not isinstance(entry, dict):
            raise ConfigError(f"{source}: {key}: expected an object, found {_kind(entry)}")
    return found


def _named(name: str, entry: Any) -> Any:
    return {"name": name, **entry} if isinstance(entry, dict) else entry


def _spec(key: str, entry: JsonObject, source: str, ignored: list[str], folder: Path) -> BackendSpec | None:
    entry = dict(entry)
    if entry.pop("disabled", False) is True:
        return None
    if entry.get("name") == RESERVED_NAME:  # a client's own file, in which emceepee itself stands
        ignored.append(key)
        return None
    if isinstance(kind := entry.get("type"), str):
        entry["type"] = _TYPE_ALIASES.get(kind, kind)
    if isinstance(url := entry.pop("serverUrl", None), str):
        entry.setdefault("url", url)
    ignored += [f"{key}.{name}" for name in entry if name not in ConfiguredEntry.model_fields]
    try:
        return ConfiguredEntry.model_validate(entry).spec_in(folder)
    except BadTlsFile as error:
        raise ConfigError(f"{source}: {key}.tls.{error.setting}: {error}") from None
    except ValidationError as error:
        path, _, words = mismatches(error, ConfiguredEntry, private=_PRIVATE)[0]
        where = ".".join([key, *(str(part) for part in path)])
        raise ConfigError(f"{source}: {where}: {words}") from None


def _limits(given: Any, source: str) -> Limits:
    if not isinstance(given, dict):
        raise ConfigError(f"{source}: limits: expected an object, found {_kind(given)}")
    known = {item.name: item for item in fields(Limits)}
    for name, value in given.items():
        if name not in known:
            raise ConfigError(f"{source}: limits.{name}: no such limit; there are {', '.join(known)}")
        wants_int = known[name].type is int  # not by the default: a duration of 30 may be set to 0.5
        is_number = isinstance(value, int if wants_int else int | float) and not isinstance(value, bool)
        least, most = range_of(name)
        if not (is_number and least <= value <= most):  # neither holds of NaN
            expected = f"{'a whole number' if wants_int else 'a number'} from {least:,g} to {most:,.15g}"
            raise ConfigError(f"{source}: limits.{name}: expected {expected}, found {_shown(value)}")
    return Limits(**given)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _roots(given: Any, source: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(root, str) for root in given):
        raise ConfigError(f"{source}: roots: expected a list of directories or file:// URIs")
    return tuple(root_uri(root) for root in given)


def _text(document: JsonObject, key: str, source: str) -> str | None:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise ConfigError(f"{source}: {key}: expected a string, found {_kind(value)}")
    return value


def _existing_file(document: JsonObject, key: str, source: str, folder: Path) -> Path | None:
    given = _text(document, key, source)
    if given is None:
        return None
    path = folder / Path(given).expanduser()
    if not path.is_file():
        raise ConfigError(f"{source}: {key}: there is no file {path}")
    return path


def locate_state(config: Config, given: str | None, environment: Mapping[str, str], *, usual: str) -> StateLocation:
    """By the flag `given`, else the variable, else the file, else as is usual. Raises: ConfigError."""
    sources = (
        ("--state", given),
        (STATE_VARIABLE, environment.get(STATE_VARIABLE)),
        ("state", config.state),
        ("", usual),
    )
    source, text = next((source, text) for source, text in sources if text)
    try:
        return parse_location(text, environment, sync=config.state_sync)
    except BadLocation as error:
        raise ConfigError(f"{source}: {error}") from None


def check_secrets(config: Config) -> None:
    """Whether tokens can be kept where they are to be. Raises: ConfigError."""
    if config.secrets != KEYRING:
        return
    if config.location.is_memory:
        raise ConfigError(
            "--secrets keyring keeps tokens longer than this process, and needs state that says which there are: "
            "say --state sqlite, too"
        )
    if config.location.redis is not None:
        raise ConfigError(
            f"--secrets keyring is for one machine, and state in Redis for several: set {KEY_VARIABLE} instead, and "
            "tokens are encrypted there"
        )
    try:
        check_keyring()
    except NoKeyring as error:
        raise ConfigError(f"--secrets keyring: {error}") from None


def _choice(document: JsonObject, key: str, choices: tuple[str, ...], default: str, source: str) -> str:
    value = document.get(key, default)
    if value not in choices:
        raise ConfigError(f"{source}: {key}: expected one of {', '.join(choices)}, found {value!r}")
    return str(value)


def _resolved(value: Any, source: str, key: str, references: References) -> Any:
    """The value with everything that it refers to."""
    if isinstance(value, str):
        try:
            return references.resolve(value)
        except BadReference as error:
            raise ConfigError(f"{source}: {key}: {error}") from None
    if isinstance(value, list):
        return [_resolved(item, source, f"{key}[{index}]", references) for index, item in enumerate(value)]
    if isinstance(value, dict):
        if value.get("disabled") is True:
            return value  # a server that is left out may lack what it would need
        return {
            name: _resolved(item, source, f"{key}.{name}" if key else name, references) for name, item in value.items()
        }
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
