"""`emceepee config`: what may stand in the configuration file, and whether what stands there can be used."""

import argparse
import os
import sys
from importlib.resources import files
from typing import TYPE_CHECKING

from emceepee.cli.client_changes import run_guarded, say_json
from emceepee.cli.terminal import DONE, FAILED, complain, printable, say

if TYPE_CHECKING:
    from emceepee.config import Config

NO_CONFIGURATION = (
    "there is no configuration: emceepee import or emceepee servers add makes one, --config names another"
)
SCHEMA_FILE = "config.schema.json"  # in the package; docs/generate.py writes it


def run_config(options: argparse.Namespace) -> int:
    """Returns the exit code."""
    return run_guarded(_print_schema if options.work == "schema" else lambda: _check(options))


def _print_schema() -> int:
    sys.stdout.write((files("emceepee") / SCHEMA_FILE).read_text("utf-8"))
    return DONE


def _check(options: argparse.Namespace) -> int:
    from emceepee.config import Config
    from emceepee.own_files import CONFIG_VARIABLE, config_source
    from emceepee.store.location import MEMORY, SQLITE

    source = config_source(options.config, os.environ)
    config, problem = (Config(), NO_CONFIGURATION) if source is None else _begin(options, usual_state=SQLITE)
    on_stdio = problem or _begin(options, usual_state=MEMORY)[1]
    name = CONFIG_VARIABLE if isinstance(source, str) else source and str(source)
    if options.json:
        say_json(
            {
                "config": name,
                "isUsable": problem is None,
                "problem": problem,
                "problemOnStdio": on_stdio,
                "servers": [spec.name for spec in config.servers],
                "ignored": list(config.ignored),
                "spelledOut": list(config.spelled_out),
            }
        )
    elif problem is None:
        _show(f"{name}", config, on_stdio)
    else:
        complain(printable(problem))
    return DONE if problem is None else FAILED


def _begin(options: argparse.Namespace, *, usual_state: str) -> "tuple[Config, str | None]":
    """As emceepee begins, up to what it would start; and why it would not."""
    from emceepee.cli.serving import usable_config
    from emceepee.config import Config, ConfigError

    try:
        return usable_config(options, usual_state=usual_state), None
    except ConfigError as error:
        return Config(), str(error)


def _show(name: str, config: "Config", on_stdio: str | None) -> None:
    count = len(config.servers)
    say(printable(f"{name} can be used: {count} server{'' if count == 1 else 's'}"))
    if on_stdio:
        say(printable(f"  not on standard input and output: {on_stdio}"))
    if config.ignored:
        say(printable(f"  means nothing to emceepee: {', '.join(config.ignored)}"))
    if config.spelled_out:
        keys = ", ".join(config.spelled_out)
        say(printable(f"  seems to hold a secret itself: {keys}; write ${{env:NAME}} or ${{file:PATH}}"))
