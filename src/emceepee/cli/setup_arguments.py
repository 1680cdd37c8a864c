"""Flags of the commands in `setup`, except `auth`. Their implementations are loaded only when they run."""

import argparse
from pathlib import Path

from emceepee.clients.known_clients import CLIENTS
from emceepee.paths import OWN_NAME

SERVERS_EXIT_CODES = "Exit codes: 0 done, 1 failed or declined, 2 usage."
CONFIG_EXIT_CODES = "Exit codes: 0 done, 1 the configuration cannot be used, 2 usage."
PATIENCE_SECONDS = 60.0  # a first start may download a package


def add_import_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    words = "Import the servers of other MCP clients into emceepee's configuration."
    parser = commands.add_parser(
        "import",
        help=words,
        description=f"{words} Shows the changes and asks for confirmation. Exit codes: 0 done, 1 failed or declined, "
        f"2 usage.",
    )
    parser.add_argument(
        "clients",
        nargs="*",
        metavar="CLIENT",
        help=f"the clients to import from (default: all that are found): {', '.join(client.key for client in CLIENTS)}",
    )
    parser.add_argument(
        "--from", dest="source", type=Path, metavar="FILE", help="read this file instead of the usual one"
    )
    parser.add_argument("--take", action="store_true", help="also remove them from the client's file")
    parser.add_argument(
        "--config", metavar="FILE", default=argparse.SUPPRESS, help="the emceepee configuration to write"
    )
    add_writing_options(parser)


def add_install_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    words = "Write the entry for emceepee itself into a client's configuration."
    parser = commands.add_parser(
        "install",
        help=words,
        description=f"{words} Shows the changes and asks for confirmation. Exit codes: 0 done, 1 failed or declined, "
        f"2 usage.",
    )
    parser.add_argument("client", metavar="CLIENT", help=", ".join(client.key for client in CLIENTS))
    parser.add_argument(
        "--http",
        metavar="URL",
        help="connect to a running emceepee serve at this URL, such as http://127.0.0.1:8080/mcp",
    )
    parser.add_argument("--name", default=OWN_NAME, help="the name of the entry (default: emceepee)")
    parser.add_argument(
        "--to", dest="target", type=Path, metavar="FILE", help="write this file instead of the usual one"
    )
    parser.add_argument(
        "--config", metavar="FILE", default=argparse.SUPPRESS, help="the configuration to start emceepee with"
    )
    add_writing_options(parser)


def add_undo_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    words = "Undo the last change by import, install, servers, or doctor --fix."
    parser = commands.add_parser(
        "undo",
        help=words,
        description=f"{words} Restores files byte for byte. In files that were edited later, it reverts only "
        f"emceepee's own changes. Exit codes: 0 done, 1 failed or declined, 2 usage.",
    )
    parser.add_argument("number", nargs="?", type=int, metavar="NUMBER", help="undo this change and all later ones")
    parser.add_argument("--all", action="store_true", help="undo every recorded change")
    parser.add_argument("--list", action="store_true", help="list the changes, latest first, without undoing them")
    parser.add_argument("--forget", action="store_true", help="leave the files unchanged, and delete the backups")
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    parser.add_argument("--json", action="store_true", help="say it in JSON")


def add_doctor_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    words = "Test every configured server, and report problems with their solutions."
    parser = commands.add_parser(
        "doctor",
        help=words,
        description=f"{words} Exit codes: 0 all servers are usable, 1 some are not, or doctor failed, 2 usage error.",
    )
    parser.add_argument("servers", nargs="*", metavar="SERVER", help="test only these servers (default: all)")
    parser.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="the configuration to check")
    parser.add_argument(
        "--ca-bundle", type=Path, metavar="FILE", default=argparse.SUPPRESS, help="trust these CAs, too"
    )
    parser.add_argument(
        "--timeout", type=seconds, default=PATIENCE_SECONDS, metavar="SECONDS", help="for each server (default: 60)"
    )
    parser.add_argument(
        "--fix", action="store_true", help="fix problems that have a safe fix; emceepee undo reverts it"
    )
    parser.add_argument(
        "--yes", action="store_true", help="with --fix: enable sharing for suitable servers without asking"
    )
    parser.add_argument("--json", action="store_true", help="say it in JSON")


def add_servers_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    words = "Show and change the servers in emceepee's configuration."
    servers = commands.add_parser("servers", help=words, description=words, epilog=SERVERS_EXIT_CODES)
    works = servers.add_subparsers(dest="work", metavar="command", required=True)

    def add(name: str, words: str) -> argparse.ArgumentParser:
        parser = works.add_parser(name, help=words, description=words, epilog=SERVERS_EXIT_CODES)
        parser.add_argument(
            "--config", metavar="FILE", default=argparse.SUPPRESS, help="the configuration to show or change"
        )
        return parser

    listing = add("list", "Show the servers: their names, types, addresses or commands, and whether they are enabled.")
    listing.add_argument("--tag", metavar="TAG", help="only servers with this tag")
    listing.add_argument("--status", action="store_true", help="also test each server, as doctor does")
    listing.add_argument(
        "--timeout", type=seconds, default=PATIENCE_SECONDS, metavar="SECONDS", help="for each server (default: 60)"
    )
    listing.add_argument("--json", action="store_true", help="say it in JSON")
    _add_server_options(add("add", "Add a server. Put -- before a command with its own flags."))
    for name, words in (
        ("remove", "Remove servers from the configuration."),
        ("enable", "Enable disabled servers."),
        ("disable", "Disable servers without removing them."),
    ):
        parser = add(name, words)
        parser.add_argument("servers", nargs="+", metavar="SERVER", help="its name")
        add_writing_options(parser)


def _add_server_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="what it is called here")
    parser.add_argument("target", metavar="URL|COMMAND", help="the server's URL, or the program to start")
    parser.add_argument("args", nargs="*", metavar="ARG", help="arguments of the program")
    parser.add_argument("--type", choices=("http", "sse"), help="transport of a URL (default: detected)")
    parser.add_argument("--header", action="append", default=[], metavar="NAME: VALUE", help="sent to a URL")
    parser.add_argument(
        "--env", action="append", default=[], metavar="NAME=VALUE", help="an environment variable for the program"
    )
    parser.add_argument("--cwd", metavar="DIR", help="the program's working directory")
    parser.add_argument("--disabled", action="store_true", help="do not start it yet")
    add_writing_options(parser)


def add_config_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    words = "Check the configuration file, or print its JSON schema."
    config = commands.add_parser("config", help=words, description=words, epilog=CONFIG_EXIT_CODES)
    works = config.add_subparsers(dest="work", metavar="command", required=True)

    def add(name: str, words: str, more: str) -> argparse.ArgumentParser:
        parser = works.add_parser(name, help=words, description=f"{words} {more}", epilog=CONFIG_EXIT_CODES)
        parser.add_argument("--json", action="store_true", help="say it in JSON")
        return parser

    check = add(
        "check",
        "Check whether emceepee accepts the configuration, and report unknown keys.",
        "No server is started: `emceepee doctor` does that.",
    )
    check.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="the configuration to check")
    schema = add(
        "schema", "Print the JSON schema of the configuration file.", "Editors use it for completion and validation."
    )
    schema.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="not needed here")


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"expected seconds from 1 to 3600, found {text!r}")
    return value


def add_writing_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="write without asking")
    parser.add_argument("--dry-run", action="store_true", help="show the changes without writing them")
    parser.add_argument("--json", action="store_true", help="print JSON; requires --yes or --dry-run")
