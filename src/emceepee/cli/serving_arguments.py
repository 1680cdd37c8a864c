"""Flags for serving: without a command, with `serve`, and with `daemon`. Other commands reuse some of them."""

import argparse
import re
from pathlib import Path

from emceepee.paths import (
    ATTACH,
    ATTACH_NEVER,
    CONFIG_VARIABLE,
    IDLE_EXIT_SECONDS,
    LOG_FORMATS,
    LOG_LEVELS,
    MOST_WORKERS,
    NATIVE_ELICITATION,
    NO_CODEMODE_VARIABLE,
    NOTICES,
    SECRETS,
    STATE_VARIABLE,
    SYNCS,
    TOKEN_VARIABLE,
)
from emceepee.state.limits import range_of
from emceepee.surface import SURFACES

MOST_SLOTS = 9999
LONGEST_IDLE_SECONDS = 86400 * 365
# A token does not start with =, because the = signs at the end of a base64 token belong to the token.
NAMED_TOKEN = re.compile(r"(?P<name>[A-Za-z][\w.@-]*)=(?P<token>[^=].*)", re.DOTALL)


def add_stdio_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the program without a command."""
    _add_common_options(parser)
    _add_daemon_options(parser)
    parser.add_argument(
        "--attach",
        choices=ATTACH,
        default=ATTACH_NEVER,
        help="never: serve the caller by itself (default); auto: through the daemon of this user, which is started if "
        "there is none; require: only through one that runs",
    )
    parser.add_argument("--session", metavar="NAME", help="take up the session of that name; needs --state sqlite")


def add_serving_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `serve` and `daemon`."""
    shared, once = _parent(), _parent()
    _add_common_options(shared)
    words = "Serve many callers over Streamable HTTP at /mcp."
    _add_serve_options(commands.add_parser("serve", help=words, description=words, parents=[shared]))
    _add_daemon_options(once)
    words = "Serve the callers of this user that say --attach, so that they share servers, state and logins."
    daemon = commands.add_parser("daemon", help=words, description=words, parents=[shared, once])
    daemon.add_argument("--detach", action="store_true", help="leave the terminal, and say `ready` once it listens")


def place_options() -> argparse.ArgumentParser:
    """Return a parser with the flags for configuration and state, for commands that read them as serving does."""
    parent = _parent()
    _add_place_options(parent)
    return parent


def login_options() -> argparse.ArgumentParser:
    """Return a parser with the flags for logins to servers, shared in the same way."""
    parent = _parent()
    _add_login_options(parent)
    return parent


def _parent() -> argparse.ArgumentParser:
    """Return a parent parser without defaults: its defaults would override flags given before the command."""
    return argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)


def _add_daemon_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--console",
        type=_port_number,
        metavar="PORT",
        help="serve a page for people at http://127.0.0.1:PORT; standard error has the link; 0 takes a free port",
    )
    parser.add_argument(
        "--idle-exit",
        type=_seconds,
        metavar="SECONDS",
        help="end the daemon when it has had no caller for so long "
        f"(default: {IDLE_EXIT_SECONDS:g} if it was started by itself, else never)",
    )


def _add_place_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help=f"server configurations; or set {CONFIG_VARIABLE}")
    parser.add_argument(
        "--state",
        metavar="WHERE",
        help="where sessions and added servers are kept: memory, sqlite, sqlite:PATH, or for several machines "
        f"redis://[USER:PASSWORD@]HOST[:PORT][/DB][?prefix=NAME]; or set {STATE_VARIABLE} "
        "(default: sqlite, but memory on standard input and output)",
    )


def _add_login_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--secrets",
        choices=SECRETS,
        help="where tokens for servers are kept: state: encrypted with the state (default); keyring: in the platform's "
        "keyring",
    )
    parser.add_argument(
        "--ca-bundle",
        type=Path,
        metavar="FILE",
        help="also trust the CAs in this file when connecting to servers and authorization servers",
    )


def _add_common_options(parser: argparse.ArgumentParser) -> None:
    _add_place_options(parser)
    _add_login_options(parser)
    parser.add_argument(
        "--no-reload",
        action="store_true",
        help="leave the configuration as it was read; without it, what changes in the file changes here, too",
    )
    parser.add_argument("--root", action="append", metavar="DIR", help="a root offered to servers; may be repeated")
    parser.add_argument(
        "--notices",
        choices=NOTICES,
        help="where replies say what is new: all: in content and structured content; blocks: in content only; "
        "auto: all, but blocks for clients known to show a model both (default)",
    )
    parser.add_argument(
        "--native-elicitation",
        choices=NATIVE_ELICITATION,
        help="auto: show servers' questions in clients that declare elicitation, besides the tools, and leave a "
        "question open that a client dismisses in less than a second (default); always: also accept such a dismissal; "
        "never: ask by the tools only",
    )
    parser.add_argument(
        "--surface",
        choices=SURFACES,
        help="which tools are listed: all, few, or search and scripts alone; every tool can be called all the same "
        "(default: full)",
    )
    parser.add_argument(
        "--max-result-bytes",
        type=_byte_count,
        metavar="N",
        help="larger results come as head, shape and a handle for read_result (default: they come whole)",
    )
    parser.add_argument(
        "--no-codemode",
        action="store_true",
        help=f"no codemode_search and no codemode_execute: nobody runs scripts; or set {NO_CODEMODE_VARIABLE}=1",
    )
    parser.add_argument("--state-sync", choices=SYNCS, help="full: what is saved survives a power cut, too")
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="default: info")
    parser.add_argument("--log-format", choices=LOG_FORMATS, help="default: text")
    parser.add_argument("--log-file", type=Path, metavar="FILE", help="default: standard error")
    parser.add_argument(
        "--audit-log",
        type=Path,
        metavar="FILE",
        help="append a line of JSON for each request: who, what, when, outcome",
    )
    parser.add_argument(
        "--audit-arguments", action="store_true", help="with the arguments, and not only a digest of them"
    )
    parser.add_argument(
        "--otel",
        action="store_true",
        help="send traces and metrics by OpenTelemetry to OTEL_EXPORTER_OTLP_ENDPOINT (default: "
        "http://localhost:4318); needs the extra emceepee[otel]",
    )
    parser.add_argument("--link-file", type=Path, metavar="FILE", help="write the newest link to the console there")


def _add_serve_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, this machine only")
    parser.add_argument("--port", type=_port_number, help="default: 8080, or the variable PORT; 0 takes a free one")
    parser.add_argument(
        "--workers",
        type=_worker_count,
        default=1,
        metavar="N",
        help="serve with N processes that share the port and the state; default: 1",
    )
    parser.add_argument(
        "--token",
        action="append",
        metavar="[NAME=]TOKEN",
        help=f"ask callers for this bearer token; several make several principals; or set {TOKEN_VARIABLE}",
    )
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="answer to this Host too")
    parser.add_argument("--allow-origin", action="append", default=[], metavar="URL", help="let pages of it call")
    parser.add_argument(
        "--allow-commands", action="store_true", help="let callers add programs who are remote, or need a token"
    )
    parser.add_argument("--allow-url", action="append", default=[], metavar="GLOB", help="only these can be added")
    parser.add_argument(
        "--require-session", action="store_true", help="refuse calls of 2026-07-28 callers that name no session"
    )
    parser.add_argument(
        "--public-url",
        metavar="URL",
        help="where browsers reach this server, to come back from logins to servers; "
        "default: only a browser on this machine comes back",
    )
    parser.add_argument(
        "--metrics", action="store_true", help="serve metrics for Prometheus at /metrics, to callers that may use /mcp"
    )
    parser.add_argument(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="serve them on a port of their own; with --workers on as many, from PORT on",
    )
    parser.add_argument("--no-console", action="store_true", help="serve MCP only, without the page for people")
    parser.add_argument("--insecure", action="store_true", help="listen beyond this machine without asking for proof")
    parser.add_argument("--oauth-issuer", metavar="URL", help="accept the JWTs of this authorization server")
    parser.add_argument("--oauth-resource", metavar="URL", help="the public URL of /mcp, which tokens must be for")
    parser.add_argument(
        "--replica-listen",
        metavar="HOST:PORT",
        help="where other replicas with the same state pass requests on to this one (default: a Unix socket with "
        "sqlite; with redis a free port of 127.0.0.1, so name one if they are on other machines)",
    )
    parser.add_argument(
        "--replica-tls", metavar="CERT,KEY[,CA]", help="files for TLS between replicas: certificate, key, authority"
    )
    parser.add_argument(
        "--replica-slot",
        type=_slot_number,
        metavar="N",
        help="the number of this replica, which its session ids end in (default: the lowest that is free)",
    )
    parser.add_argument("--oauth-scope", action="append", default=[], metavar="SCOPE", help="a scope tokens must have")


def _port_number(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port number, found {text!r}")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= LONGEST_IDLE_SECONDS:
        raise argparse.ArgumentTypeError(f"expected a number of seconds up to {LONGEST_IDLE_SECONDS}, found {text!r}")
    return seconds


def _slot_number(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_SLOTS:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {MOST_SLOTS}, found {text!r}")
    return int(text)


def _worker_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {MOST_WORKERS}, found {text!r}")
    return int(text)


def _byte_count(text: str) -> int:
    allowed = range_of("largest_result_bytes")
    if not text.isdecimal() or len(text) > 20 or not allowed.allows(int(text)):
        expected = allowed.describe("a number of bytes")
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text[:60]!r}")
    return int(text)


def bare_token(text: str) -> str:
    """Return a token without its name; `serve` accepts NAME=TOKEN."""
    found = NAMED_TOKEN.fullmatch(text.strip())
    return found["token"] if found else text.strip()
