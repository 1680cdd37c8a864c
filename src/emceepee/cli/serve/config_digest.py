"""By what a caller and a daemon see that they have the same configuration, without loading it."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from emceepee.bounds.files import read_file
from emceepee.config.secret_references import References
from emceepee.paths import NO_CODEMODE_VARIABLE, STATE_VARIABLE, config_source, state_folder

LARGEST_FILE = 16 << 20  # bytes, as of a configuration
# What decides what servers there are, how they are reached and what callers see; not where logs go.
_FLAGS = (
    *("state", "secrets", "ca_bundle", "root", "notices", "native_elicitation", "state_sync"),
    *("surface", "no_codemode", "max_result_bytes"),
)
_VARIABLES = (
    *(STATE_VARIABLE, "EMCEEPEE_STATE_KEY", NO_CODEMODE_VARIABLE),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)


def digest(options: Mapping[str, Any], environment: Mapping[str, str], here: Path) -> str:
    """Of everything that decides what a caller would find: file, references, flags and variables, as seen from here."""
    flags = {name: str(options.get(name)) for name in _FLAGS if options.get(name)}
    flags |= {name: value for name in _VARIABLES if (value := environment.get(name) or environment.get(name.lower()))}
    place = str(here) if "root" in flags or "ca_bundle" in flags else ""  # what they are seen from
    whole = [_configuration(options.get("config"), environment, here), flags, place, str(state_folder(environment))]
    return blake2b(json.dumps(whole, sort_keys=True).encode(), digest_size=16).hexdigest()


def _configuration(given: str | None, environment: Mapping[str, str], here: Path) -> Any:
    source = config_source(given, environment)
    if source is None:
        return None
    file = here / source if isinstance(source, Path) else None
    try:
        text = str(source) if file is None else read_file(file, LARGEST_FILE).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return [str(file)]  # whoever loads it will say what is wrong
    references = References(environment=environment, folder=here if file is None else file.parent, ask_keyring=_name_of)
    try:
        return [str(file), references.resolve_all(_document(text), "", lambda *_: None)]
    except RecursionError:
        return [str(file), text]  # the same


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    from emceepee.config import jsonc  # here: most files have no comments
    from emceepee.config.document_errors import BadDocument

    try:
        return jsonc.read(text)
    except BadDocument:
        return text


def _name_of(service: str, name: str) -> str:
    """Instead of what a keyring has: it may want to be unlocked each time."""
    return f"{service}/{name}"
