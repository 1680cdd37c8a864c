"""`emceepee auth`: log in to servers at a terminal. The implementation is loaded when it runs."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence

from emceepee.cli.setup.auth_outcome import DONE, EXIT_CODES, FAILED, AuthError, AuthOutcome
from emceepee.cli.terminal import complain
from emceepee.guard.caller_identity import LOCAL
from emceepee.terminal_text import printable, printable_json


def add_auth_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", places: Sequence[argparse.ArgumentParser]
) -> None:
    """`places` are parent parsers with the flags for state, secrets, and egress."""
    words = "Log in to servers, and list logins."
    auth = commands.add_parser("auth", help=words, description=words, epilog=EXIT_CODES)
    works = auth.add_subparsers(dest="work", metavar="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--principal",
        metavar="NAME",
        default=LOCAL,
        help="whose logins: the NAME of a --token NAME=TOKEN of emceepee serve, or of OAuth tokens the issuer, a bar "
        "and the subject; "
        f"default: {LOCAL}, for callers on standard input and output or without a token",
    )
    common.add_argument("--json", action="store_true", help="say it in JSON")

    def add(name: str, words: str) -> argparse.ArgumentParser:
        return works.add_parser(name, help=words, description=words, parents=[*places, common], epilog=EXIT_CODES)

    add("list", "Show all servers and their login status.")
    add("status", "Show the login status of one server.").add_argument("server", metavar="SERVER", help="its name")
    _login_options(add("login", "Log in to a server: with a browser here or anywhere, or by entering a code."))
    logout = add("logout", "Delete a login, and revoke its tokens if the authorization server supports that.")
    logout.add_argument("server", metavar="SERVER", help="its name")
    logout.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _login_options(login: argparse.ArgumentParser) -> None:
    login.add_argument("server", metavar="SERVER", help="its name")
    login.add_argument("--device", action="store_true", help="show a code to enter in a browser anywhere")
    login.add_argument(
        "--browser",
        action=argparse.BooleanOptionalAction,
        help="open a browser on this machine; default: if it has a display and this is not an SSH session",
    )
    login.add_argument(
        "--callback",
        metavar="URL",
        help="the redirect URI of a manually registered client, at which emceepee serve may be running; "
        "default: a free port of 127.0.0.1",
    )


def run_auth(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    """Run the command and return the exit code."""
    try:
        outcome = _work(options, environment)
        sys.stdout.write(f"{printable_json(outcome.facts)}\n" if options.json else printable(outcome.text))
        sys.stdout.flush()
    except AuthError as error:
        if options.json and error.code == FAILED:
            sys.stdout.write(f"{printable_json({'state': 'failed', 'error': str(error)})}\n")
            sys.stdout.flush()
        complain(error)
        return error.code
    except KeyboardInterrupt:
        sys.stderr.write("\nemceepee: the login was cancelled\n")
        return FAILED
    except BrokenPipeError:  # the reader closed the pipe early, for example `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    return outcome.code


def _work(options: argparse.Namespace, environment: Mapping[str, str]) -> AuthOutcome:
    """Raises: AuthError."""
    from emceepee.cli.setup.auth_config import auth_config

    config = auth_config(options, environment)
    from emceepee.cli.setup.auth_work import run_work

    return run_work(config, options, environment)
