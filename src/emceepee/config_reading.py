"""A Config from the text of the configuration file, and errors that name file, key and what was expected."""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from emceepee.backends.configured_entry import ConfiguredEntry
from emceepee.backends.http1.tls import BadTlsFile
from emceepee.backends.spec import RESERVED_NAME, BackendSpec, root_uri
from emceepee.config import Config, ConfigError
from emceepee.json_types import JsonObject
from emceepee.own_files import (
    CONFIG_VARIABLE,
    NATIVE_ELICITATION,
    NOTICES,
    SECRETS,
    SYNCS,
    config_source,
    current_folder,
)
from emceepee.secret_references import BadReference, References, literal_secrets
from emceepee.state.limits import Limits, range_of
from emceepee.surface import SURFACES, Surface
from emceepee.telemetry.logs import FORMATS, LEVELS
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


def load(path: str | None, environment: Mapping[str, str] = os.environ) -> Config:
    """Read `path`, else what EMCEEPEE_CONFIG holds (inline JSON, a path, or nothing), else the user's own file, if any.

    Raises:
        ConfigError
    """
    source = config_source(path, environment)
    if source is None:
        return Config()
    if isinstance(source, str):
        references = References(environment=environment, folder=current_folder())  # in full: a daemon goes elsewhere
        return parse(source, source=CONFIG_VARIABLE, references=references)
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
        _check_record(spec, servers.values(), source, key)
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


def _check_record(spec: BackendSpec, others: Iterable[BackendSpec], source: str, key: str) -> None:
    """What two servers said would not be told apart in one file."""
    if spec.record is None:
        return
    file = os.path.realpath(spec.record)
    for other in others:
        if other.record is not None and os.path.realpath(other.record) == file:
            raise ConfigError(f'{source}: {key}.record: server "{other.name}" is recorded to that file; name another')


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
