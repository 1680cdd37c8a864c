"""`emceepee`: serve one caller on standard input and output."""

import argparse
import asyncio
import os
import sys
from dataclasses import replace
from pathlib import Path

import uvloop

from emceepee import __version__
from emceepee.app import run_stdio
from emceepee.backends.spec import root_uri
from emceepee.config import CONFIG_VARIABLE, Config, ConfigError, load
from emceepee.telemetry import logs

USAGE_ERROR = 2
log = logs.EventLog("cli")


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        config = _config(options)
    except ConfigError as error:
        sys.stderr.write(f"emceepee: {error}\n")
        return USAGE_ERROR
    logs.configure(level=config.log_level, style=config.log_format, file=config.log_file)
    if config.ignored:
        log.warning("config_keys_ignored", keys=list(config.ignored))
    stdout = _private_stdout()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_stdio(config, stdin=0, stdout=stdout))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emceepee",
        description="An MCP proxy: gives any tool-capable client the whole protocol through a fixed set of tools. "
        "Without a command it serves one caller on standard input and output.",
    )
    parser.add_argument("--config", metavar="FILE", help=f"server configurations; or set {CONFIG_VARIABLE}")
    parser.add_argument("--root", action="append", metavar="DIR", help="a root offered to servers; may be repeated")
    parser.add_argument("--log-level", choices=logs.LEVELS, help="default: info")
    parser.add_argument("--log-format", choices=logs.FORMATS, help="default: text")
    parser.add_argument("--log-file", type=Path, metavar="FILE", help="default: standard error")
    parser.add_argument("--version", action="version", version=f"emceepee {__version__}")
    return parser


def _config(options: argparse.Namespace) -> Config:
    config = load(options.config)
    return replace(
        config,
        roots=tuple(root_uri(root) for root in options.root or ()) or config.roots,
        log_level=options.log_level or config.log_level,
        log_format=options.log_format or config.log_format,
        log_file=options.log_file,
    )


def _private_stdout() -> int:
    """Keep standard output for the protocol alone: whatever else prints there, prints to standard error."""
    protocol = os.dup(1)
    os.set_inheritable(protocol, False)
    sys.stdout.flush()
    os.dup2(2, 1)
    return protocol
