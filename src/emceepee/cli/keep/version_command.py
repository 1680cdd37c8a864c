"""`emceepee version`: the versions of emceepee, Python, the protocol, and the state engine."""

import argparse
import os
import platform
import sqlite3

from emceepee import __version__
from emceepee.cli.client_changes import run_guarded, say_json
from emceepee.cli.terminal import DONE, say
from emceepee.paths import CONFIG_VARIABLE, STATE_VARIABLE, usual_config
from emceepee.wire.protocol import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS


def run_version(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    facts = {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "protocols": [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS],
        "stateEngine": _engine(options.state or os.environ.get(STATE_VARIABLE) or ""),
        "config": _config(options.config),
    }
    if options.json:
        say_json(facts)
    else:
        say(f"emceepee {facts.pop('version')}")
        for name, value in facts.items():
            text = ", ".join(value) if isinstance(value, list) else str(value or "none")
            say(f"  {name:<12} {text}")
    return DONE


def _engine(where: str) -> str:
    """Return the engine that flags or environment variables select, else `serve`'s default."""
    kind = where.partition(":")[0]
    return f"sqlite {sqlite3.sqlite_version}" if kind in ("", "sqlite") else kind


def _config(given: str | None) -> str | None:
    """Return the configuration file in use, if any."""
    text = given or os.environ.get(CONFIG_VARIABLE, "").strip()
    if text.startswith("{"):
        return CONFIG_VARIABLE
    try:
        path = os.path.abspath(os.path.expanduser(text)) if text else str(usual_config(os.environ))
    except RuntimeError:
        return None
    return path if os.path.exists(path) else None
