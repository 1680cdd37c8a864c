"""Where emceepee's own files are, and the names of what can be set. Every command reads this, so it is small."""

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
)  # auto: of clients with a person
KEYRING = "keyring"
SECRETS = ("state", KEYRING)  # where tokens for servers are kept
ATTACH_NEVER, ATTACH_AUTO, ATTACH_REQUIRE = "never", "auto", "require"
ATTACH = (ATTACH_NEVER, ATTACH_AUTO, ATTACH_REQUIRE)  # whether a process on standard input uses the daemon
IDLE_EXIT_SECONDS = 300.0  # after which a daemon that was started by itself ends
STATE_VARIABLE = "EMCEEPEE_STATE"
SYNCS = ("normal", "full")
LOG_LEVELS = ("debug", "info", "warn", "error")
LOG_FORMATS = ("text", "json")
MOST_WORKERS = 64
CONFIG_NAME = "config.json"
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700  # for their owner alone


def usual_config(environment: Mapping[str, str]) -> Path:
    """In the user's directory for configuration. Raises: RuntimeError if there is no home."""
    given = Path(environment.get("XDG_CONFIG_HOME") or ".")
    home = Path(environment.get("HOME") or Path.home())
    base = given if given.is_absolute() else home / ".config"  # as the specification has it, any other is ignored
    return base / "emceepee" / CONFIG_NAME


def config_source(path: str | None, environment: Mapping[str, str]) -> Path | str | None:
    """Where the configuration is: `path`, else what EMCEEPEE_CONFIG holds (text or a path), else the user's own file.

    Text is the configuration itself. None: there is none.
    """
    if path is not None:
        return Path(path)
    if CONFIG_VARIABLE in environment:
        inline = environment[CONFIG_VARIABLE].strip()
        return inline if inline.startswith("{") else Path(inline) if inline else None
    own = usual_config(environment) if environment.get("HOME") else None
    return own if own is not None and own.exists() else None


def current_folder() -> Path:
    """In full. The root, if it was removed: then no path that was meant from it leads anywhere."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


def state_folder(environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The user's directory for what programs remember. Raises: RuntimeError if there is no home."""
    given = Path(environment.get("XDG_STATE_HOME") or ".")
    if given.is_absolute():
        return given / "emceepee"
    home = Path(environment.get("HOME") or Path.home())
    usual = ("Library", "Application Support") if platform == "darwin" else (".local", "state")
    return home.joinpath(*usual, "emceepee")
