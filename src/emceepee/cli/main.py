"""`emceepee`: the command line. Each command imports its implementation when it runs, so that the others start fast."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from emceepee.backends.process.search_path import drop_relative_folders
from emceepee.cli.command_arguments import add_own_commands, add_use_commands, add_watch_commands, take_late
from emceepee.cli.config_arguments import add_config_command
from emceepee.cli.help_text import GroupedHelp, SafeParser
from emceepee.cli.keep.state_command import add_state_command, run_state
from emceepee.cli.serve.process_setup import STDIN, STDOUT, fill_closed
from emceepee.cli.serve.restarts import CANNOT_START
from emceepee.cli.server_arguments import add_servers_command
from emceepee.cli.serving_arguments import add_serving_commands, add_stdio_options, login_options, place_options
from emceepee.cli.setup.auth_command import add_auth_command, run_auth
from emceepee.cli.setup_arguments import (
    add_doctor_command,
    add_import_command,
    add_install_command,
    add_undo_command,
)
from emceepee.paths import ATTACH_NEVER

USAGE_ERROR = CANNOT_START


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    closed = fill_closed()
    drop_relative_folders(os.environ)
    parser = build_parser()
    options, rest = parser.parse_known_args(arguments)
    if left := take_late(options, rest):
        parser.error(f"unrecognized arguments: {' '.join(left)}")
    try:
        return _run(options, arguments, parser, closed)
    except KeyboardInterrupt:  # Ctrl-C arrived before the command handles signals itself
        from emceepee.cli.terminal import FAILED, complain

        complain("stopped")
        return FAILED


def _run(
    options: argparse.Namespace, arguments: list[str] | None, parser: argparse.ArgumentParser, closed: frozenset[int]
) -> int:
    match options.command:
        case "state":
            return run_state(options)
        case "auth":
            return run_auth(options)
        case "import":
            from emceepee.cli.setup.import_command import run_import

            return run_import(options)
        case "install":
            from emceepee.cli.setup.install_command import run_install

            return run_install(options)
        case "undo":
            from emceepee.cli.setup.undo_command import run_undo

            return run_undo(options)
        case "doctor":
            from emceepee.cli.setup.doctor_command import run_doctor

            return run_doctor(options)
        case "config":
            from emceepee.cli.setup.config_command import run_config

            return run_config(options)
        case "daemon":
            from emceepee.cli.serve.daemon_command import run_daemon_command

            return run_daemon_command(options)
        case "servers":
            from emceepee.cli.setup.servers_command import run_servers

            return run_servers(options)
        case "call":
            from emceepee.cli.use.call_command import run_call

            return run_call(options)
        case "tools" | "read" | "prompt" | "search":
            from emceepee.cli.use.query_command import run_query

            return run_query(options)
        case "replay":
            from emceepee.cli.watch.replay_command import run_replay

            return run_replay(options, closed)
        case "logs":
            from emceepee.cli.watch.logs_command import run_logs

            return run_logs(options)
        case "top":
            from emceepee.cli.watch.top_command import run_top

            return run_top(options)
        case "version":
            from emceepee.cli.keep.version_command import run_version

            return run_version(options)
        case "completion":
            from emceepee.cli.keep.completion_command import run_completion

            return run_completion(options.shell, parser)
        case _:
            if options.command is None and options.attach != ATTACH_NEVER and not closed & {STDIN, STDOUT}:
                from emceepee.cli.serve.attach_command import attach

                if (code := attach(options, arguments)) is not None:
                    return code
            from emceepee.server.garbage_collector import collect_less_while_loading

            with collect_less_while_loading():
                from emceepee.cli.serve.serve_command import serve
            return serve(options, arguments, closed)


def main_http() -> int:
    """Run `emceepee-http`, an alias of `emceepee serve`."""
    return main(["serve", *sys.argv[1:]])


def build_parser() -> argparse.ArgumentParser:
    parser = GroupedHelp(
        prog="emceepee",
        description="An MCP proxy: gives any tool-capable client the whole protocol through a fixed set of tools. "
        "Without a command it serves one caller on standard input and output.",
    )
    add_stdio_options(parser)
    parser.add_argument("--version", action=_ShowVersion, nargs=0, help="show the version and exit")
    plain: type[argparse.ArgumentParser] = SafeParser
    commands = parser.add_subparsers(dest="command", metavar="command", parser_class=plain)
    add_serving_commands(commands)
    place = place_options()
    add_state_command(commands, [place])
    add_auth_command(commands, [place, login_options()])
    add_import_command(commands)
    add_install_command(commands)
    add_undo_command(commands)
    add_doctor_command(commands)
    add_servers_command(commands)
    add_config_command(commands)
    add_use_commands(commands)
    add_watch_commands(commands)
    add_own_commands(commands)
    return parser


class _ShowVersion(argparse.Action):
    """Looks up the version only when requested, because the lookup takes longer than everything else."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        from emceepee import __version__

        sys.stdout.write(f"emceepee {__version__}\n")
        parser.exit()
