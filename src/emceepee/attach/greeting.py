"""What is said before the protocol begins: one line each way, and the digest by which configurations are compared."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from emceepee.own_files import CONFIG_VARIABLE, STATE_VARIABLE, config_source, state_folder
from emceepee.secret_references import BadReference, References

LONGEST_GREETING = 16 << 10  # bytes
# What decides what servers there are, how they are reached and what callers see; not where logs go.
_FLAGS = ("state", "secrets", "ca_bundle", "root", "notices", "native_elicitation", "state_sync")
_VARIABLES = (STATE_VARIABLE, "EMCEEPEE_STATE_KEY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


class BadGreeting(Exception):
    """What is at the other end does not speak as emceepee does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Of whoever attaches. Its session goes on under that name, and stays after it if `is_kept`."""

    version: str
    configuration: str
    session: str
    is_kept: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Welcome:
    """Of the daemon: lines in both directions are the protocol's from now on. Or `refusal` says why not."""

    pid: int
    longest_line: int = 0
    link_file: str | None = None  # where the newest link to the console is
    refusal: str | None = None


def write_greeting(greeting: Hello | Welcome) -> bytes:
    return json.dumps({"emceepee": type(greeting).__name__.lower(), **asdict(greeting)}).encode() + b"\n"


def read_hello(line: bytes) -> Hello:
    """Raises: BadGreeting."""
    found = _read(line, "hello")
    texts = [found.get(name) for name in ("version", "configuration", "session")]
    if not all(isinstance(text, str) and text for text in texts):
        raise BadGreeting("the greeting lacks something")
    version, configuration, session = map(str, texts)
    return Hello(version=version, configuration=configuration, session=session, is_kept=found.get("is_kept") is True)


def read_welcome(line: bytes) -> Welcome:
    """Raises: BadGreeting."""
    found = _read(line, "welcome")
    try:
        return Welcome(
            pid=int(found["pid"]),
            longest_line=int(found["longest_line"]),
            link_file=found.get("link_file"),
            refusal=found.get("refusal"),
        )
    except (KeyError, TypeError, ValueError):
        raise BadGreeting("the greeting lacks something") from None


def _read(line: bytes, kind: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("emceepee") != kind:
        raise BadGreeting("no emceepee is at the other end of the socket")
    return found


def digest(options: Mapping[str, Any], environment: Mapping[str, str]) -> str:
    """Of everything that decides what a caller would find: file, references, flags and variables."""
    flags = {name: str(options.get(name)) for name in _FLAGS if options.get(name)}
    flags |= {name: value for name in _VARIABLES if (value := environment.get(name) or environment.get(name.lower()))}
    place = os.path.abspath(".") if "root" in flags or "ca_bundle" in flags else ""  # what they are seen from
    whole = [_configuration(options.get("config"), environment), flags, place, str(state_folder(environment))]
    return blake2b(json.dumps(whole, sort_keys=True).encode(), digest_size=16).hexdigest()


def _configuration(given: str | None, environment: Mapping[str, str]) -> Any:
    source = config_source(given, environment)
    if source is None:
        return None
    folder = Path()
    if isinstance(source, Path):
        folder = source.absolute().parent
        try:
            text = source.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return CONFIG_VARIABLE  # whoever loads it will say what is wrong
    else:
        text = source
    try:
        document = json.loads(text)
    except ValueError:
        return text
    # Not asked for here: it may want to be unlocked each time.
    references = References(
        environment=environment, folder=folder, ask_keyring=lambda service, name: f"{service}/{name}"
    )
    return [str(folder), _resolved(document, references)]


def _name_of(service: str, name: str) -> str:
    """Instead of what a keyring has: it may want to be unlocked each time."""
    return f"{service}/{name}"


def _resolved(value: Any, references: References) -> Any:
    if isinstance(value, str):
        try:
            return references.resolve(value)
        except BadReference:
            return value
    if isinstance(value, list):
        return [_resolved(item, references) for item in value]
    if isinstance(value, dict):
        return {name: _resolved(item, references) for name, item in value.items()}
    return value
