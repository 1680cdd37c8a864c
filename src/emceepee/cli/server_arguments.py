"""Flags of `emceepee servers`. Its implementation is loaded only when it runs."""

import argparse

from emceepee.cli.setup_arguments import PATIENCE_SECONDS, add_writing_options, seconds

EXIT_CODES = "Exit codes: 0 done, 1 failed or declined, 2 usage."


def add_servers_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    words = "Show and change the servers in emceepee's configuration."
    servers = commands.add_parser("servers", help=words, description=words, epilog=EXIT_CODES)
    works = servers.add_subparsers(dest="work", metavar="command", required=True)

    def add(name: str, words: str) -> argparse.ArgumentParser:
        parser = works.add_parser(name, help=words, description=words, epilog=EXIT_CODES)
        parser.add_argument(
            "--config", metavar="FILE", default=argparse.SUPPRESS, help="the configuration to show or change"
        )
        return parser

    listing = add("list", "Show the servers: their names, types, addresses or commands, and whether they are enabled.")
    listing.add_argument("--tag", metavar="TAG", help="only those with this tag")
    listing.add_argument("--status", action="store_true", help="try each server as well, as doctor does")
    listing.add_argument(
        "--timeout", type=seconds, default=PATIENCE_SECONDS, metavar="SECONDS", help="for each server (default: 60)"
    )
    listing.add_argument("--json", action="store_true", help="say it in JSON")
    _add_options(add("add", "Write one more server. Put -- before a command with flags of its own."))
    for name, words in (
        ("remove", "Take servers out of the configuration."),
        ("enable", "Let servers be started again that were disabled."),
        ("disable", "Keep servers in the configuration without starting them."),
    ):
        parser = add(name, words)
        parser.add_argument("servers", nargs="+", metavar="SERVER", help="its name")
        add_writing_options(parser)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what it is called here")
    parser.add_argument("target", metavar="URL|COMMAND", help="its address, or the program to start")
    parser.add_argument("args", nargs="*", metavar="ARG", help="arguments of the program")
    parser.add_argument("--type", choices=("http", "sse"), help="of a URL (default: found out)")
    parser.add_argument("--header", action="append", default=[], metavar="NAME: VALUE", help="sent to a URL")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable for a program")
    parser.add_argument("--cwd", metavar="DIR", help="where a program is started")
    parser.add_argument("--disabled", action="store_true", help="do not start it yet")
    add_writing_options(parser)
