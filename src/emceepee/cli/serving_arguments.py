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
        help="never: serve the caller in this process (default); auto: attach to the user's daemon, and start it if "
        "none is running; require: attach only to a running daemon",
    )
    parser.add_argument("--session", metavar="NAME", help="resume the session with this name; needs --state sqlite")


def add_serving_commands(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `serve` and `daemon`."""
    shared, once = _parent(), _parent()
    _add_common_options(shared)
    words = "Serve many callers over Streamable HTTP at /mcp."
    _add_serve_options(commands.add_parser("serve", help=words, description=words, parents=[shared]))
    _add_daemon_options(once)
    words = "Serve the user's callers that pass --attach, so that they share servers, state, and logins."
    daemon = commands.add_parser("daemon", help=words, description=words, parents=[shared, once])
    daemon.add_argument(
        "--detach", action="store_true", help="detach from the terminal, and print `ready` once it listens"
    )


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
        help="serve the web console at http://127.0.0.1:PORT, and print its link to standard error; 0 selects a free "
        "port",
    )
    parser.add_argument(
        "--idle-exit",
        type=_seconds,
        metavar="SECONDS",
        help="stop the daemon after this many seconds without a caller "
        f"(default: {IDLE_EXIT_SECONDS:g} if started automatically, else never)",
    )


def _add_place_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help=f"server configurations; or set {CONFIG_VARIABLE}")
    parser.add_argument(
        "--state",
        metavar="WHERE",
        help="where sessions and added servers are stored: memory, sqlite, sqlite:PATH, or for several machines "
        f"redis://[USER:PASSWORD@]HOST[:PORT][/DB][?prefix=NAME]; or set {STATE_VARIABLE} "
        "(default: sqlite, but memory on standard input and output)",
    )


def _add_login_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--secrets",
        choices=SECRETS,
        help="where tokens for servers are stored: state: encrypted with the state (default); keyring: in the "
        "platform's "
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
        help="do not follow changes to the configuration file",
    )
    parser.add_argument("--root", action="append", metavar="DIR", help="a root offered to servers; may be repeated")
    parser.add_argument(
        "--notices",
        choices=NOTICES,
        help="where replies report new events: all: in content and structured content; blocks: in content only; "
        "auto: all, but blocks for clients known to show both to the model (default)",
    )
    parser.add_argument(
        "--native-elicitation",
        choices=NATIVE_ELICITATION,
        help="auto: show servers' questions in clients that declare elicitation, besides the tools, and leave a "
        "question open that a client dismisses in less than a second (default); always: also accept such a dismissal; "
        "never: ask only through the tools",
    )
    parser.add_argument(
        "--surface",
        choices=SURFACES,
        help="which tools are listed: all, few, or only search and scripts; unlisted tools can still be called "
        "(default: full)",
    )
    parser.add_argument(
        "--max-result-bytes",
        type=_byte_count,
        metavar="N",
        help="larger results are returned as a preview, shape, and handle for read_result (default: return all "
        "results whole)",
    )
    parser.add_argument(
        "--no-codemode",
        action="store_true",
        help=f"disable codemode_search and codemode_execute, so that no scripts run; or set {NO_CODEMODE_VARIABLE}=1",
    )
    parser.add_argument("--state-sync", choices=SYNCS, help="full: saved data also survives a power failure")
    parser.add_argument("--log-level", choices=LOG_LEVELS, help="default: info")
    parser.add_argument("--log-format", choices=LOG_FORMATS, help="default: text")
    parser.add_argument("--log-file", type=Path, metavar="FILE", help="default: standard error")
    parser.add_argument(
        "--audit-log",
        type=Path,
        metavar="FILE",
        help="append a line of JSON for each request: principal, target, time, and outcome",
    )
    parser.add_argument("--audit-arguments", action="store_true", help="log the arguments instead of only their digest")
    parser.add_argument(
        "--otel",
        action="store_true",
        help="send traces and metrics by OpenTelemetry to OTEL_EXPORTER_OTLP_ENDPOINT (default: "
        "http://localhost:4318); needs the extra emceepee[otel]",
    )
    parser.add_argument("--link-file", type=Path, metavar="FILE", help="write the newest console link to this file")


def _add_serve_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, this machine only")
    parser.add_argument("--port", type=_port_number, help="default: 8080, or the variable PORT; 0 selects a free port")
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
        help=f"require this bearer token; each named token is a separate principal; or set {TOKEN_VARIABLE}",
    )
    parser.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME", help="also accept this Host header"
    )
    parser.add_argument("--allow-origin", action="append", default=[], metavar="URL", help="let pages of it call")
    parser.add_argument(
        "--allow-commands", action="store_true", help="allow remote or authenticated callers to add programs"
    )
    parser.add_argument(
        "--allow-url", action="append", default=[], metavar="GLOB", help="callers can add only matching URLs"
    )
    parser.add_argument(
        "--require-session", action="store_true", help="reject 2026-07-28 calls that specify no session"
    )
    parser.add_argument(
        "--public-url",
        metavar="URL",
        help="the URL at which browsers reach this server after logging in to a server; default: only browsers on "
        "this machine can return",
    )
    parser.add_argument(
        "--metrics", action="store_true", help="serve metrics for Prometheus at /metrics, for callers that may use /mcp"
    )
    parser.add_argument(
        "--metrics-listen",
        metavar="HOST:PORT",
        help="serve metrics on a separate port; with --workers, each worker has its own, starting at PORT",
    )
    parser.add_argument("--no-console", action="store_true", help="serve only MCP, without the web console")
    parser.add_argument(
        "--insecure", action="store_true", help="allow connections from other machines without authentication"
    )
    parser.add_argument("--oauth-issuer", metavar="URL", help="accept the JWTs of this authorization server")
    parser.add_argument(
        "--oauth-resource", metavar="URL", help="the public URL of /mcp, which must be the tokens' audience"
    )
    parser.add_argument(
        "--replica-listen",
        metavar="HOST:PORT",
        help="where other replicas with the same state forward requests to this one (default: a Unix socket with "
        "sqlite; with redis a free port of 127.0.0.1, so specify one if they are on other machines)",
    )
    parser.add_argument(
        "--replica-tls", metavar="CERT,KEY[,CA]", help="files for TLS between replicas: certificate, key, authority"
    )
    parser.add_argument(
        "--replica-slot",
        type=_slot_number,
        metavar="N",
        help="the number of this replica, which ends its session ids (default: the lowest free number)",
    )
    parser.add_argument(
        "--oauth-scope", action="append", default=[], metavar="SCOPE", help="a scope that tokens must have"
    )


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
