"""Convert a client's server entry to emceepee's own configuration format.

Clients differ in few key names, and no key has two meanings. So one reader handles the entries of all clients,
including undeclared ones (`import --from FILE`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from emceepee.bounds.budget import Budget, OverBudget
from emceepee.clients.client_file import ClientFile
from emceepee.clients.client_program import ClientProgram
from emceepee.clients.plain_values import TooDeep, plain
from emceepee.config.document_errors import BadDocument
from emceepee.config.secret_references import BadReference, References
from emceepee.wire.json_types import JsonObject

LONGEST_NAME = 100  # the configuration's own limit
LONGEST_TIMEOUT_MS = 900_000
MOST_CHARACTERS, MOST_VALUES = 1 << 20, 20_000  # limits for all servers in a file
_URLS = ("url", "serverUrl", "httpUrl", "uri")
_ENVS = ("env", "environment", "envs")
_HEADERS = ("headers", "http_headers")
_TYPES = {
    **dict.fromkeys(("http", "streamable-http", "streamableHttp", "streamable_http"), "http"),
    **dict.fromkeys(("stdio", "local"), "stdio"),
    "sse": "sse",
    "remote": None,
}
_FILTERS = {
    **dict.fromkeys(("includeTools", "enabled_tools", "available_tools"), "allowedTools"),
    **dict.fromkeys(("excludeTools", "disabled_tools", "disabledTools"), "deniedTools"),
}
# Keys that matter only to the client. Dropping them loses nothing.
_QUIETLY_DROPPED = frozenset(
    {
        *("name", "type", "source", "transport", "tools", "gallery", "version", "id", "display_name", "bundled"),
        *("alwaysLoad", "deferTools", "startup_timeout_sec", "startup_timeout_ms", "connectionTimeout", "initTimeout"),
        *("enabled", "disabled", "required", "settings"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundServer:
    """An entry of a client's file. `entry` is None if emceepee cannot run it, and `problem` gives the reason.

    `notes` are remarks for the user: which keys were omitted, and why the server is imported as disabled. `is_used`:
    the client has the server enabled.
    """

    client: ClientProgram
    name: str
    entry: JsonObject | None = None
    problem: str = ""
    notes: tuple[str, ...] = ()
    is_used: bool = True


def servers_of(file: ClientFile, references: References) -> list[FoundServer]:
    """Raises: ClientError."""
    budget = Budget(max_bytes=MOST_CHARACTERS, max_nodes=MOST_VALUES)
    found = []
    for name, raw in file.entries():
        try:
            budget.spend(len(name))
            values = plain(raw, budget)
        except OverBudget as error:
            raise BadDocument(f"{file.path}: its servers have more than {error.limit:,.0f} {error.resource}") from None
        except TooDeep:
            raise BadDocument(f'{file.path}: the server "{name[:LONGEST_NAME]}" is nested too deeply') from None
        found.append(_found(file.client, name, values, references))
    return found


def _found(client: ClientProgram, name: str, raw: Any, references: References) -> FoundServer:
    def unusable(problem: str) -> FoundServer:
        return FoundServer(client=client, name=name, problem=problem)

    if not 1 <= len(name) <= LONGEST_NAME or not name.isprintable():
        return unusable(f"its name must have 1 to {LONGEST_NAME} printable characters")
    if not isinstance(raw, dict):
        return unusable("it is no object")
    if (why := _no_server(raw)) is not None:
        return unusable(why)
    raw = _flattened(raw)
    try:
        entry = _target(raw)
    except ValueError as error:
        return unusable(str(error))
    notes = [f"{key} was omitted: {why}" for key, why in _left_out(raw)]
    entry |= _options(raw, notes)
    entry = _expanded(entry, client.expansions)
    is_used = raw.get("disabled") is not True and raw.get("enabled") is not False
    if not is_used:
        entry["disabled"] = True
    elif unresolved := list(_unresolved(entry, references)):
        entry["disabled"] = True
        notes += [f"imported disabled, because {words}" for words in dict.fromkeys(unresolved)]
    return FoundServer(client=client, name=name, entry=entry, notes=tuple(notes), is_used=is_used)


def _no_server(raw: JsonObject) -> str | None:
    kind = raw.get("type")
    if kind in ("builtin", "platform", "frontend", "inline_python"):
        return f"it is part of the client itself (type {kind})"
    if raw.get("source") == "extension" or (set(raw) <= {"settings", "enabled", "source"} and "settings" in raw):
        return "it belongs to an extension of the client, and only the client can start it"
    if kind is not None and (not isinstance(kind, str) or kind not in _TYPES):
        return f"emceepee knows no transport {kind!r}"
    return None


def _flattened(raw: JsonObject) -> JsonObject:
    """Remove the nesting that some clients use."""
    flat = dict(raw)
    if isinstance(inner := flat.get("config"), dict):  # older Goose files
        flat |= inner
        del flat["config"]
    if isinstance(command := flat.get("command"), dict):  # older Zed files
        flat |= {"command": command.get("path"), "args": command.get("args"), "env": command.get("env")}
    if isinstance(transport := flat.get("transport"), dict):
        flat |= transport
    if isinstance(options := flat.pop("requestOptions", None), dict):  # Continue
        flat.setdefault("headers", options.get("headers"))
    if "cmd" in flat:
        flat.setdefault("command", flat.pop("cmd"))
    return flat


def _target(raw: JsonObject) -> JsonObject:
    """Raises: ValueError."""
    url = next((raw[key] for key in _URLS if isinstance(raw.get(key), str) and raw[key]), None)
    command: Any = raw.get("command")
    kind = _TYPES.get(str(raw.get("type") or raw.get("transport") or ""))
    if command and (url is None or kind == "stdio"):
        words = command if isinstance(command, list) else [command, *_list_of(raw, "args")]
        if not all(isinstance(word, str | int | float) and not isinstance(word, bool) for word in words):
            raise ValueError("its command and args must be texts")
        program, *args = map(str, words)
        entry: JsonObject = {"command": program} | ({"args": args} if args else {})
        if isinstance(raw.get("cwd"), str):
            entry["cwd"] = raw["cwd"]
        env = _texts(raw, _ENVS) | {name: f"${{env:{name}}}" for name in _names(raw, "env_vars")}
        return entry | ({"env": env} if env else {})
    if url is None:
        raise ValueError("it has neither a command nor a URL")
    if not url.lower().startswith(("http://", "https://", "unix://", "${", "{")):
        raise ValueError("its URL must begin with http:// or https://")
    headers = _texts(raw, _HEADERS)
    headers |= {name: f"${{env:{variable}}}" for name, variable in _texts(raw, ("env_http_headers",)).items()}
    if isinstance(variable := raw.get("bearer_token_env_var"), str) and variable:
        headers["Authorization"] = f"Bearer ${{env:{variable}}}"
    entry = {"url": url} | ({"type": kind} if kind in ("http", "sse") else {})
    return entry | ({"headers": headers} if headers else {})


def _options(raw: JsonObject, notes: list[str]) -> JsonObject:
    options: JsonObject = {}
    if isinstance(words := raw.get("description"), str) and words.strip():
        options["description"] = words
    for theirs, ours in _FILTERS.items():
        if names := _names(raw, theirs):
            options[ours] = names
    milliseconds = _milliseconds(raw)
    if milliseconds is not None and 0 < milliseconds <= LONGEST_TIMEOUT_MS:
        options["timeout_ms"] = milliseconds
    elif milliseconds is not None:
        notes.append("timeout was omitted: emceepee uses the timeout of each call")
    oauth = raw.get("oauth")
    if isinstance(oauth, dict):
        theirs_to_ours = {"clientId": "client_id", "clientSecret": "client_secret", "scopes": "scopes"}
        kept = {ours: oauth[theirs] for theirs, ours in theirs_to_ours.items() if oauth.get(theirs)}
        if isinstance(kept.get("scopes"), str):
            kept["scopes"] = kept["scopes"].split()
        options |= {"oauth": kept} if kept else {}
    return options


def _milliseconds(raw: JsonObject) -> int | None:
    """Convert a timeout to milliseconds. Clients write seconds or milliseconds; the magnitude distinguishes them."""
    seconds = raw.get("tool_timeout_sec")
    given = raw.get("timeout")
    for value in (seconds, given):
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return round(value * 1000 if value is seconds or value < 1000 else value)
    return None


def _left_out(raw: JsonObject) -> Iterator[tuple[str, str]]:
    reasons = {
        "envFile": "emceepee does not read such files; write the variables under env",
        "env_keys": "the client stores them; add each under env as ${env:NAME} or ${keyring:SERVICE/NAME}",
        **dict.fromkeys(
            ("alwaysAllow", "autoApprove", "trust"), "the client decides which tools run without confirmation"
        ),
    }
    taken = {*_URLS, *_ENVS, *_HEADERS, *_FILTERS, "command", "args", "cwd", "description", "timeout", "oauth"}
    taken |= {"tool_timeout_sec", "bearer_token_env_var", "env_http_headers", "env_vars"}
    for key, value in raw.items():
        if key in reasons:
            if value not in (None, [], {}, "", False):
                yield key, reasons[key]
        elif key not in taken and key not in _QUIETLY_DROPPED and value not in (None, [], {}, ""):
            yield key, "emceepee does not use it"


def _expanded(value: Any, expansions: Iterable[tuple[str, str]]) -> Any:
    if isinstance(value, str):
        for pattern, ours in expansions:
            value = re.sub(pattern, ours, value)
        return value
    if isinstance(value, list):
        return [_expanded(item, expansions) for item in value]
    if isinstance(value, dict):
        return {key: _expanded(item, expansions) for key, item in value.items()}
    return value


def _unresolved(value: Any, references: References) -> Iterator[str]:
    """Yield an error for each reference that cannot be resolved: with one, emceepee could not start the server."""
    if isinstance(value, str):
        if "${" in value and "keyring:" not in value:  # a keyring reference would prompt the user to unlock the keyring
            try:
                references.resolve(value)
            except BadReference as error:
                yield str(error)
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _unresolved(item, references)


def _list_of(raw: JsonObject, key: str) -> list[Any]:
    value = raw.get(key)
    return value if isinstance(value, list) else []


def _names(raw: JsonObject, key: str) -> list[str]:
    return [item for item in _list_of(raw, key) if isinstance(item, str)]


def _texts(raw: JsonObject, keys: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key in keys:
        values = raw.get(key)
        if isinstance(values, Mapping):
            for name, value in values.items():
                if isinstance(value, bool):
                    found[str(name)] = "true" if value else "false"
                elif isinstance(value, str | int | float):
                    found[str(name)] = str(value)
    return found
