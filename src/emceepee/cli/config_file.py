"""`emceepee config`: what may stand in the configuration file, and whether what stands there can be used."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.resources import files

from emceepee.cli.client_changes import run_guarded, say_json
from emceepee.cli.terminal import DONE, FAILED, complain, printable, say

SCHEMA_FILE = "config.schema.json"  # in the package; docs/generate.py writes it


def run_config(options: argparse.Namespace) -> int:
    """Returns the exit code."""
    return run_guarded(_print_schema if options.work == "schema" else lambda: _check(options))


def _print_schema() -> int:
    sys.stdout.write((files("emceepee") / SCHEMA_FILE).read_text("utf-8"))
    return DONE


def _check(options: argparse.Namespace) -> int:
    from emceepee.config import Config, ConfigError
    from emceepee.config_reading import load
    from emceepee.own_files import CONFIG_VARIABLE, config_source

    try:
        source = config_source(options.config, os.environ)
        config, problem = load(options.config, os.environ), None
    except ConfigError as error:
        source, config, problem = None, Config(), str(error)
    if source is None and problem is None:
        problem = "there is no configuration: emceepee import or emceepee servers add makes one, --config names another"
    name = CONFIG_VARIABLE if isinstance(source, str) else source and str(source)
    if options.json:
        say_json(
            {
                "config": name,
                "isUsable": problem is None,
                "problem": problem,
                "servers": [spec.name for spec in config.servers],
                "ignored": list(config.ignored),
                "spelledOut": list(config.spelled_out),
            }
        )
    elif problem is None:
        _show(f"{name}", len(config.servers), config.ignored, config.spelled_out)
    else:
        complain(printable(problem))
    return DONE if problem is None else FAILED


def _show(name: str, servers: int, ignored: Sequence[str], spelled_out: Sequence[str]) -> None:
    say(printable(f"{name} can be used: {servers} server{'' if servers == 1 else 's'}"))
    if ignored:
        say(printable(f"  means nothing to emceepee: {', '.join(ignored)}"))
    if spelled_out:
        say(
            printable(
                f"  seems to hold a secret itself: {', '.join(spelled_out)}; write ${{env:NAME}} or ${{file:PATH}}"
            )
        )
