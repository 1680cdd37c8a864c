"""Parse the configuration file into a Config. Errors name the file, the key, and the expected value."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from emceepee.backends.spec import (
    LONGEST_SERVER_NAME,
    RESERVED_NAME,
    BackendSpec,
    has_control_characters,
    one_line,
    root_uri,
)
from emceepee.bounds.files import read_file
from emceepee.config import jsonc_edits
from emceepee.config.document_errors import BadDocument
from emceepee.config.former_limits import FORMER_LIMITS
from emceepee.config.secret_references import BadReference, References, literal_secrets
from emceepee.config.server_entry import ConfiguredEntry, ReportMistake, read_entry, unusable_spec
from emceepee.config.settings import Config, ConfigError, ConfigProblem, ConfigWarning
from emceepee.paths import (
    CONFIG_VARIABLE,
    NATIVE_ELICITATION,
    NOTICES,
    SECRETS,
    SYNCS,
    config_source,
    current_folder,
)
from emceepee.state.limits import Limits, range_of
from emceepee.surface import SURFACES, Surface
from emceepee.telemetry.logs import FORMATS, LEVELS, EventLog
from emceepee.wire.json_types import JsonObject

log = EventLog("config")
# Aliases for the same transports in other programs.
_TYPE_ALIASES = {"streamable-http": "http", "streamableHttp": "http", "streamable_http": "http", "local": "stdio"}
_TOP_KEYS = (
    *("servers", "mcpServers", "mcpClients", "limits", "roots"),
    *("notices", "nativeElicitation", "surface", "searchVectors"),
    *("logLevel", "logFormat", "state", "stateSync", "secrets"),
)
_OTHER_KEYS = ("disabled", "serverUrl")  # keys of an entry that ConfiguredEntry lacks
LARGEST_CONFIG = 16 << 20  # bytes
SCHEMA_KEY = "$schema"  # used by editors
LONGEST_REASON = 1000  # characters
NO_SERVER = ""  # instead of a server's name: the command needs no entry
NOT_READ = "its entry is not needed, and was not read"
DISABLED = "it is disabled in the configuration file"


def load(path: str | None, environment: Mapping[str, str] = os.environ, *, only: str | None = None) -> Config:
    """Read `path`, else EMCEEPEE_CONFIG (inline JSON, a path, or empty), else the user's own file, if any.

    With `only`, resolve references for that server alone, and make all other servers unusable. So a command that needs
    one server, or NO_SERVER, does not read the secrets of others from a keyring.

    Raises:
        ConfigError: as `parse`, or the file cannot be read.
    """
    return _load(path, environment, partial(parse, only=only))


def load_for_check(path: str | None, environment: Mapping[str, str] = os.environ) -> Config:
    """Like `load`, but return a Config also if emceepee would not start with it. Raises: ConfigError."""
    return _load(path, environment, inspect)


class _Read(Protocol):
    def __call__(self, text: str, *, source: str, references: References) -> Config: ...


def _load(path: str | None, environment: Mapping[str, str], read: _Read) -> Config:
    source = config_source(path, environment)
    if source is None:
        return Config()
    if isinstance(source, str):
        # absolute: a daemon changes its working directory
        references = References(environment=environment, folder=current_folder())
        return read(source, source=CONFIG_VARIABLE, references=references)
    references = References(environment=environment, folder=source.absolute().parent)
    return read(_read(source), source=str(source), references=references)


def find_file(path: str | None, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the file that `load` reads, or None if there is none."""
    source = config_source(path, environment)
    return str(source) if isinstance(source, Path) else None


def parse(text: str, *, source: str, references: References, only: str | None = None) -> Config:
    """Parse JSON text, which may have comments, into a Config. `source` names the text in errors.

    A server whose entry has a mistake is included as unusable. `problems` lists all mistakes.

    Raises:
        ConfigError: the text is not a configuration, or a setting without which emceepee does not start is invalid.
    """
    config = inspect(text, source=source, references=references, only=only)
    if fatal := [f"{source}: {problem}" for problem in config.problems if problem.is_fatal]:
        raise ConfigError("; ".join(fatal))
    return config


def inspect(text: str, *, source: str, references: References, only: str | None = None) -> Config:
    """Like `parse`, but return a Config even if emceepee would not start with it.

    Raises:
        ConfigError: the text is not a configuration.
    """
    try:
        return _inspect(_document(text, source), references, only)
    except RecursionError:
        raise ConfigError(f"{source}: it is nested too deeply") from None


def _document(text: str, source: str) -> JsonObject:
    if not text.strip():
        raise ConfigError(f"{source}: not valid JSON: it is empty")
    try:
        document = jsonc_edits.read(text)
    except BadDocument as error:
        raise ConfigError(f"{source}: {error}") from None
    if not isinstance(document, dict):
        raise ConfigError(f"{source}: expected a JSON object with servers or mcpServers, found {_kind(document)}")
    return document


def _inspect(document: JsonObject, references: References, only: str | None) -> Config:
    settings = _Settings(document, references)
    limits = settings.limits()
    servers = _Servers(settings.problems, references, limits, only)
    for key, name, entry in _entries(document, settings.problems):
        servers.read(key, name, entry)
    return Config(
        servers=tuple(servers.specs.values()),
        disabled=tuple(spec for name, spec in servers.disabled.items() if name not in servers.specs),
        limits=limits,
        roots=settings.roots(),
        notices=settings.choice("notices", NOTICES, NOTICES[0]),
        native_elicitation=settings.choice("nativeElicitation", NATIVE_ELICITATION, NATIVE_ELICITATION[0]),
        search_vectors=settings.existing_file("searchVectors"),
        surface=Surface(settings.choice("surface", SURFACES, SURFACES[0], is_fatal=True)),
        log_level=settings.choice("logLevel", LEVELS, "info"),
        log_format=settings.choice("logFormat", FORMATS, "text"),
        state=settings.text("state", is_fatal=True),
        state_sync=settings.choice("stateSync", SYNCS, SYNCS[0], is_fatal=True),
        secrets=settings.choice("secrets", SECRETS, SECRETS[0], is_fatal=True),
        ignored=tuple([key for key in document if key not in _TOP_KEYS and key != SCHEMA_KEY] + servers.ignored),
        spelled_out=tuple(servers.spelled_out),
        problems=tuple(settings.problems),
        warnings=tuple(settings.warnings),
    )


def warn_of_problems(problems: Iterable[ConfigProblem]) -> None:
    """Log each mistake in the active configuration."""
    for problem in problems:
        instead = "the server is disabled" if problem.server else "the value from before, or the default"
        server = {"server": problem.server} if problem.server else {}
        log.warning("config_mistake", **server, key=problem.key, error=problem.message, instead=instead)


def log_warnings(warnings: Iterable[ConfigWarning]) -> None:
    """Log each key in the active configuration that no longer has an effect."""
    for warning in warnings:
        log.warning("config_key_without_effect", key=warning.key, because=warning.message)


def _read(path: Path) -> str:
    try:
        return read_file(path, LARGEST_CONFIG, allows_pipe=True).decode("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from None


def _entries(document: JsonObject, problems: list[ConfigProblem]) -> list[tuple[str, str | None, Any]]:
    """Return all server entries of the three supported shapes, each with its key and the name in that key."""
    found: list[tuple[str, str | None, Any]] = []
    listed = document.get("servers", [])
    if isinstance(listed, dict):  # some editors use this shape
        found += [(f"servers.{name}", name, entry) for name, entry in listed.items()]
    elif isinstance(listed, list):
        found += [(f"servers[{index}]", None, entry) for index, entry in enumerate(listed)]
    else:
        problems.append(ConfigProblem("servers", f"expected a list, found {_kind(listed)}", is_fatal=True))
    for shape in ("mcpServers", "mcpClients"):
        mapped = document.get(shape, {})
        if isinstance(mapped, dict):
            found += [(f"{shape}.{name}", name, entry) for name, entry in mapped.items()]
        else:
            words = f"expected an object of names and servers, found {_kind(mapped)}"
            problems.append(ConfigProblem(shape, words, is_fatal=True))
    return found


class _Servers:
    """Reads the servers of the file one by one. A mistake in one does not affect the others."""

    def __init__(self, problems: list[ConfigProblem], references: References, limits: Limits, only: str | None) -> None:
        self._problems, self._references, self._limits, self._only = problems, references, limits, only
        self.specs: dict[str, BackendSpec] = {}  # includes unusable servers
        self.disabled: dict[str, BackendSpec] = {}
        self.ignored: list[str] = []
        self.spelled_out: list[str] = []

    def read(self, key: str, name_in_key: str | None, entry: Any) -> None:
        mistakes: list[ConfigProblem] = []

        def report(where: str, message: str, *, reference: BadReference | None = None) -> None:
            missing = None if reference is None else reference.missing
            mistakes.append(ConfigProblem(where, message, is_reference=reference is not None, missing=missing))

        if not isinstance(entry, dict):
            report(key, f"expected an object, found {_kind(entry)}")
            self._keep_unusable(name_in_key, {}, mistakes)
            return
        if name_in_key is not None:
            entry = {"name": name_in_key, **entry}
        if entry.get("disabled") is True:
            if _is_name(name := entry.get("name")):
                self.disabled.setdefault(name, unusable_spec(name, entry, DISABLED))
            return
        if entry.get("name") == RESERVED_NAME:  # a client's own file that contains emceepee
            self.ignored.append(key)
            return
        if self._only is not None and _is_name(name := entry.get("name")) and name != self._only and "${" not in name:
            self.specs.setdefault(name, unusable_spec(name, entry, NOT_READ))
            return
        self.spelled_out += literal_secrets(entry, key)
        known = _known_keys(entry)
        self.ignored += [f"{key}.{name}" for name in entry if name not in known and name not in _OTHER_KEYS]
        spec = read_entry(known, key, self._references, report)
        name = entry.get("name") if spec is None else spec.name
        if _is_name(name) and name in self.specs:
            report(key, f'the name "{name}" is used twice; names must be unique, so this entry is ignored')
            self._problems += mistakes
            return
        if spec is not None:
            self._check(spec, key, report)
        if spec is None or mistakes:
            self._keep_unusable(name, entry, mistakes)
        else:
            self.specs[spec.name] = spec

    def _keep_unusable(self, name: object, entry: JsonObject, mistakes: list[ConfigProblem]) -> None:
        """Keep the server under its name, if the name is valid, so that callers get the reason why it does not work."""
        if not _is_name(name) or name == RESERVED_NAME or name in self.specs:
            self._problems += mistakes
            return
        self._problems += [replace(mistake, server=name) for mistake in mistakes]
        reason = one_line("; ".join(map(str, mistakes)), LONGEST_REASON)
        self.specs[name] = unusable_spec(name, entry, reason)

    def _check(self, spec: BackendSpec, key: str, report: ReportMistake) -> None:
        """Report conflicts of an entry with the limits and with other servers."""
        if spec.timeout is not None and spec.timeout > self._limits.longest_call_seconds:
            most = f"{self._limits.longest_call_seconds * 1000:.10g} (limits.longest_call_seconds)"
            report(f"{key}.timeout_ms", f"may be at most {most}")
        if spec.record is not None:
            file = os.path.realpath(spec.record)
            for other in self.specs.values():
                if other.record is not None and os.path.realpath(other.record) == file:
                    report(f"{key}.record", f'server "{other.name}" is already recorded to that file; choose another')


def _is_name(value: object) -> "TypeGuard[str]":
    """Return whether the value is a valid server name."""
    return isinstance(value, str) and 0 < len(value) <= LONGEST_SERVER_NAME and not has_control_characters(value)


def _known_keys(entry: JsonObject) -> JsonObject:
    """Return the keys that emceepee supports, under emceepee's own names."""
    known = {name: value for name, value in entry.items() if name in ConfiguredEntry.model_fields}
    if isinstance(kind := entry.get("type"), str):
        known["type"] = _TYPE_ALIASES.get(kind, kind)
    if isinstance(url := entry.get("serverUrl"), str):
        known.setdefault("url", url)
    return known


class _Settings:
    """Reads all settings except servers. A setting with a mistake gets its default and is reported.

    A mistake is fatal if the default could store, expose, or allow what the operator meant to prevent.
    """

    def __init__(self, document: JsonObject, references: References) -> None:
        self._document, self._references = document, references
        self.problems: list[ConfigProblem] = []
        self.warnings: list[ConfigWarning] = []

    def _value(self, key: str, default: Any, *, is_fatal: bool) -> Any:
        """Return the value with references resolved, or the default if a reference fails."""
        count = len(self.problems)

        def report(where: str, error: BadReference) -> None:
            self.problems.append(ConfigProblem(where, str(error), is_reference=True, is_fatal=is_fatal))

        value = self._references.resolve_all(self._document.get(key, default), key, report)
        return value if len(self.problems) == count else default

    def _report(self, key: str, message: str, *, is_fatal: bool = False) -> None:
        self.problems.append(ConfigProblem(key, message, is_fatal=is_fatal))

    def text(self, key: str, *, is_fatal: bool = False) -> str | None:
        value = self._value(key, None, is_fatal=is_fatal)
        if value is None or isinstance(value, str):
            return value
        self._report(key, f"expected a string, found {_kind(value)}", is_fatal=is_fatal)
        return None

    def choice(self, key: str, choices: tuple[str, ...], default: str, *, is_fatal: bool = False) -> str:
        value = self._value(key, default, is_fatal=is_fatal)
        if value in choices:
            return str(value)
        self._report(key, f"expected one of {', '.join(choices)}, found {_shown(value)}", is_fatal=is_fatal)
        return default

    def existing_file(self, key: str) -> Path | None:
        given = self.text(key)
        if given is None:
            return None
        try:
            path = self._references.folder / Path(given).expanduser()
            if path.is_file():
                return path
            self._report(key, f"there is no file {path}")
        except (OSError, RuntimeError, ValueError) as error:
            self._report(key, f"the path cannot be used: {error}")
        return None

    def roots(self) -> tuple[str, ...]:
        given = self._value("roots", [], is_fatal=True)
        if isinstance(given, list) and all(isinstance(root, str) for root in given):
            try:
                return tuple(root_uri(root) for root in given)
            except (OSError, RuntimeError, ValueError) as error:
                self._report("roots", f"a path cannot be used: {error}", is_fatal=True)
                return ()
        self._report("roots", "expected a list of directories or file:// URIs", is_fatal=True)
        return ()

    def limits(self) -> Limits:
        """Return the limits, with the default for each invalid one."""
        given = self._value("limits", {}, is_fatal=False)
        if not isinstance(given, dict):
            self._report("limits", f"expected an object, found {_kind(given)}")
            return Limits()
        known = {item.name: item for item in fields(Limits)}
        usable = {}
        for name, value in given.items():
            if (former := FORMER_LIMITS.get(name)) is not None:
                words = (
                    f"this setting no longer has an effect, so remove it; the limit is always {former.describe(name)}"
                )
                self.warnings.append(ConfigWarning(f"limits.{name}", words))
                continue
            if name not in known:
                self._report(f"limits.{name}", f"no such limit; there are {', '.join(known)}")
                continue
            wants_int = known[name].type is int  # not the type of the default: a duration of 30 may be set to 0.5
            is_number = isinstance(value, int if wants_int else int | float) and not isinstance(value, bool)
            allowed = range_of(name)
            if is_number and allowed.allows(value):
                usable[name] = value
                continue
            expected = allowed.describe("a whole number" if wants_int else "a number")
            self._report(f"limits.{name}", f"expected {expected}, found {_shown(value)}")
        return Limits(**usable)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
