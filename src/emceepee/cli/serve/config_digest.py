"""Digests that show a caller and a daemon, without loading it, that their configurations match."""

import json
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from emceepee.bounds.files import read_file
from emceepee.config.secret_references import References
from emceepee.paths import NO_CODEMODE_VARIABLE, STATE_VARIABLE, config_source, state_folder

LARGEST_FILE = 16 << 20  # bytes; limit for the size of configuration files
# Settings that determine which servers exist, how to reach them, and what callers see; not where logs go.
_FLAGS = (
    *("state", "secrets", "ca_bundle", "root", "notices", "native_elicitation", "state_sync"),
    *("surface", "no_codemode", "max_result_bytes"),
)
_VARIABLES = (
    *(STATE_VARIABLE, "EMCEEPEE_STATE_KEY", NO_CODEMODE_VARIABLE),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)


def digest(options: Mapping[str, Any], environment: Mapping[str, str], here: Path) -> str:
    """Return a digest of all input that determines a caller's view: file, references, flags, variables, directory."""
    flags = {name: str(options.get(name)) for name in _FLAGS if options.get(name)}
    flags |= {name: value for name in _VARIABLES if (value := environment.get(name) or environment.get(name.lower()))}
    place = str(here) if "root" in flags or "ca_bundle" in flags else ""  # relative paths depend on it
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
        return [str(file)]  # the process that loads the file reports the error
    references = References(environment=environment, folder=here if file is None else file.parent, ask_keyring=_name_of)
    try:
        return [str(file), references.resolve_all(_document(text), "", lambda *_: None)]
    except RecursionError:
        return [str(file), text]  # too deeply nested: compare the text instead


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    from emceepee.config import jsonc_edits  # imported here: most files have no comments
    from emceepee.config.document_errors import BadDocument

    try:
        return jsonc_edits.read(text)
    except BadDocument:
        return text


def _name_of(service: str, name: str) -> str:
    """Use the reference instead of the keyring's secret: reading a keyring may prompt for its password each time."""
    return f"{service}/{name}"
