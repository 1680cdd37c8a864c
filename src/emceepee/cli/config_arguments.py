"""Flags of `emceepee config`. Its implementation is loaded only when it runs."""

import argparse

EXIT_CODES = "Exit codes: 0 done, 1 the configuration cannot be used, 2 usage."


def add_config_command(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    words = "Check the configuration file, or print its JSON schema."
    config = commands.add_parser("config", help=words, description=words, epilog=EXIT_CODES)
    works = config.add_subparsers(dest="work", metavar="command", required=True)

    def add(name: str, words: str, more: str) -> argparse.ArgumentParser:
        parser = works.add_parser(name, help=words, description=f"{words} {more}", epilog=EXIT_CODES)
        parser.add_argument("--json", action="store_true", help="say it in JSON")
        return parser

    check = add(
        "check",
        "Say whether emceepee would take the configuration, and what in it means nothing.",
        "No server is started: `emceepee doctor` does that.",
    )
    check.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="the configuration to check")
    schema = add("schema", "Print the JSON schema of the configuration file.", "Editors complete and check by it.")
    schema.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help="not needed here")
