"""`emceepee`: the command line. Each command imports its implementation when it runs, so that the others start fast."""

import argparse
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from emceepee.backends.process.search_path import drop_relative_folders
from emceepee.cli.command_arguments import add_own_commands, add_use_commands, add_watch_commands, take_late
from emceepee.cli.keep.state_command import add_state_command, run_state
from emceepee.cli.serve.process_setup import STDIN, STDOUT, fill_closed
from emceepee.cli.serve.restarts import CANNOT_START
from emceepee.cli.serving_arguments import add_serving_commands, add_stdio_options, login_options, place_options
from emceepee.cli.setup.auth_command import add_auth_command, run_auth
from emceepee.cli.setup_arguments import (
    add_config_command,
    add_doctor_command,
    add_import_command,
    add_install_command,
    add_servers_command,
    add_undo_command,
)
from emceepee.paths import ATTACH_NEVER
from emceepee.terminal_text import printable

GROUPS = {
    "Serve": ("serve", "daemon"),
    "Set up": ("import", "install", "servers", "config", "auth", "doctor", "undo"),
    "Use servers": ("tools", "call", "read", "prompt", "search"),
    "Watch": ("logs", "top", "replay"),
    "Keep": ("state", "version", "completion"),
}
WIDEST = 110
COLUMN = 14
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


class SafeParser(argparse.ArgumentParser):
    """Escapes its error messages, because they repeat arguments, which may come from untrusted sources."""

    def error(self, message: str) -> NoReturn:
        super().error(printable(message))


class GroupedHelp(SafeParser):
    """Omits the usage line with all flags, which is too long to read."""

    def format_help(self) -> str:
        commands = {
            choice.dest: choice.help or ""
            for action in self._actions
            if isinstance(action, argparse._SubParsersAction)
            for choice in action._choices_actions
        }
        formatter = self._get_formatter()
        formatter.add_usage("%(prog)s [options] [command ...]", [], [])
        formatter.add_text(self.description)
        parts = [formatter.format_help()]
        grouped = [name for names in GROUPS.values() for name in names]
        groups = GROUPS | {"More": tuple(name for name in commands if name not in grouped)}
        for title, names in groups.items():
            if listed := [_help_line(name, commands[name]) for name in names if name in commands]:
                parts.append(f"{title}:\n" + "".join(listed))
        formatter = self._get_formatter()
        formatter.start_section("Options")
        formatter.add_arguments(
            [action for action in self._actions if not isinstance(action, argparse._SubParsersAction)]
        )
        formatter.end_section()
        parts.append(formatter.format_help())
        parts.append("`emceepee COMMAND --help` describes a command.\n")
        return "\n".join(parts)


def _help_line(name: str, words: str) -> str:
    width = max(min(shutil.get_terminal_size().columns, WIDEST), COLUMN + 30)
    first, rest = f"  {name:<{COLUMN}}", " " * (COLUMN + 2)
    return f"{textwrap.fill(words, width, initial_indent=first, subsequent_indent=rest)}\n"
