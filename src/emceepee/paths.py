"""The paths of emceepee's own files, and the allowed values of settings. Every command imports this small module."""

import sys
from collections.abc import Mapping
from pathlib import Path

OWN_NAME = "emceepee"
CONFIG_VARIABLE = "EMCEEPEE_CONFIG"
NO_CODEMODE_VARIABLE = "EMCEEPEE_NO_CODEMODE"
TOKEN_VARIABLE = "EMCEEPEE_TOKEN"  # the name of the variable
NOTICES = ("auto", "all", "blocks")  # by the client, in blocks and structured content, or only in blocks
NATIVE_ELICITATION = (
    "auto",
    "always",
    "never",
)  # auto: ask only clients with a person
KEYRING = "keyring"
SECRETS = ("state", KEYRING)  # where tokens for servers are stored
ATTACH_NEVER, ATTACH_AUTO, ATTACH_REQUIRE = "never", "auto", "require"
ATTACH = (ATTACH_NEVER, ATTACH_AUTO, ATTACH_REQUIRE)  # whether a process on standard input uses the daemon
IDLE_EXIT_SECONDS = 300.0  # after which an automatically started daemon exits
STATE_VARIABLE = "EMCEEPEE_STATE"
SYNCS = ("normal", "full")
LOG_LEVELS = ("debug", "info", "warn", "error")
LOG_FORMATS = ("text", "json")
MOST_WORKERS = 64
CONFIG_NAME = "config.json"
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700  # accessible only to their owner


def usual_config(environment: Mapping[str, str]) -> Path:
    """Return the default path, in the user's configuration directory. Raises: RuntimeError if there is no home."""
    given = Path(environment.get("XDG_CONFIG_HOME") or ".")
    home = Path(environment.get("HOME") or Path.home())
    base = given if given.is_absolute() else home / ".config"  # the XDG specification says to ignore a relative path
    return base / "emceepee" / CONFIG_NAME


def config_source(path: str | None, environment: Mapping[str, str]) -> Path | str | None:
    """Return the source of the configuration: `path`, else the value of EMCEEPEE_CONFIG, else the user's own file.

    The variable contains a path or the configuration itself, which is returned as text. None means no configuration.
    """
    if path is not None:
        return Path(path)
    if CONFIG_VARIABLE in environment:
        inline = environment[CONFIG_VARIABLE].strip()
        return inline if inline.startswith("{") else Path(inline) if inline else None
    own = usual_config(environment) if environment.get("HOME") else None
    return own if own is not None and own.exists() else None


def current_folder() -> Path:
    """Return the absolute working directory, or the root if it was removed: relative paths then lead nowhere."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


def state_folder(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return emceepee's folder in the user's state directory. Raises: RuntimeError if there is no home."""
    given = Path(environment.get("XDG_STATE_HOME") or ".")
    if given.is_absolute():
        return given / "emceepee"
    home = Path(environment.get("HOME") or Path.home())
    usual = ("Library", "Application Support") if platform == "darwin" else (".local", "state")
    return home.joinpath(*usual, "emceepee")
