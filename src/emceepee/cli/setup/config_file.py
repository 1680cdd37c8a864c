"""`emceepee config`: what may stand in the configuration file, and whether what stands there can be used."""

import argparse
import os
import sys
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from emceepee.cli.client_changes import Facts, run_guarded, say_json
from emceepee.cli.terminal import DONE, FAILED, complain, say

if TYPE_CHECKING:
    from emceepee.config.settings import Config

NO_CONFIGURATION = (
    "there is no configuration: emceepee import or emceepee servers add makes one, --config names another"
)
SCHEMA_FILE = "config.schema.json"  # in the package; docs/generate.py writes it


def run_config(options: argparse.Namespace) -> int:
    """Returns the exit code."""
    return run_guarded(_print_schema if options.work == "schema" else lambda: _check(options))


def _print_schema() -> int:
    sys.stdout.write((files("emceepee.config") / SCHEMA_FILE).read_text("utf-8"))
    return DONE


@dataclass(frozen=True, slots=True, kw_only=True)
class _Checked:
    """What was found: all mistakes, and what else prevents a start with `serve` or on standard input and output."""

    name: str | None
    config: "Config"
    at_serve: tuple[str, ...] = ()
    at_stdio: tuple[str, ...] = ()

    @property
    def problem(self) -> str | None:
        return self._why_not(self.at_serve)

    @property
    def on_stdio(self) -> str | None:
        return self._why_not(self.at_stdio)

    def _why_not(self, more: tuple[str, ...]) -> str | None:
        fatal = [f"{self.name}: {problem}" for problem in self.config.problems if problem.is_fatal]
        return "; ".join([*fatal, *more]) or None

    @property
    def is_right(self) -> bool:
        return self.problem is None and not self.config.problems

    @property
    def servers(self) -> list[str]:
        """Those that can be used."""
        broken = {problem.server for problem in self.config.problems}
        return [spec.name for spec in self.config.servers if spec.name not in broken]


def _check(options: argparse.Namespace) -> int:
    from emceepee.config.settings import Config
    from emceepee.paths import CONFIG_VARIABLE, config_source

    source = config_source(options.config, os.environ)
    if source is None:
        found = _Checked(name=None, config=Config(), at_serve=(NO_CONFIGURATION,), at_stdio=(NO_CONFIGURATION,))
    else:
        found = _checked(CONFIG_VARIABLE if isinstance(source, str) else str(source), options)
    if options.json:
        say_json(_facts(found))
    else:
        _show(found)
    return DONE if found.is_right else FAILED


def _checked(name: str, options: argparse.Namespace) -> _Checked:
    """As emceepee begins, up to what it would start."""
    from emceepee.cli.serve.serving import check_config
    from emceepee.config.file_reading import load_for_check
    from emceepee.config.settings import Config, ConfigError
    from emceepee.store.location import MEMORY, SQLITE

    try:
        config = load_for_check(options.config, os.environ)
    except ConfigError as error:
        return _Checked(name=name, config=Config(), at_serve=(str(error),), at_stdio=(str(error),))
    at_serve, at_stdio = (check_config(config, options, usual_state=usual) for usual in (SQLITE, MEMORY))
    return _Checked(name=name, config=config, at_serve=at_serve, at_stdio=at_stdio)


def _facts(found: _Checked) -> Facts:
    return {
        "config": found.name,
        "isUsable": found.problem is None,
        "problem": found.problem,
        "problemOnStdio": found.on_stdio,
        "problems": [
            {"key": problem.key, "message": problem.message}
            | ({} if problem.server is None else {"server": problem.server})
            for problem in found.config.problems
        ],
        "servers": found.servers,
        "ignored": list(found.config.ignored),
        "spelledOut": list(found.config.spelled_out),
    }


def _show(found: _Checked) -> None:
    name, config, count = found.name, found.config, len(found.servers)
    for problem in config.problems:
        complain(f"{name}: {problem}")
    for words in found.at_serve:
        complain(words)
    if found.problem is not None:
        if config.problems:
            complain("nothing starts with this configuration")
        return
    servers = f"{count} server{'' if count == 1 else 's'}"
    if config.problems:
        complain(_consequence(config, servers))
    else:
        say(f"{name} can be used: {servers}")
    _show_notes(config, found.on_stdio)


def _consequence(config: "Config", servers: str) -> str:
    disabled = list(dict.fromkeys(problem.server for problem in config.problems if problem.server is not None))
    words = f"{servers} can be used"
    if disabled:
        words += f"; disabled until their entries are fixed: {', '.join(disabled)}"
    return words


def _show_notes(config: "Config", on_stdio: str | None) -> None:
    if on_stdio:
        say(f"  not on standard input and output: {on_stdio}")
    if config.ignored:
        say(f"  means nothing to emceepee: {', '.join(config.ignored)}")
    if config.spelled_out:
        keys = ", ".join(config.spelled_out)
        say(f"  seems to hold a secret itself: {keys}; write ${{env:NAME}} or ${{file:PATH}}")
