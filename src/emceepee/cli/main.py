"""`emceepee`: serve one caller on standard input and output, or with `serve` many over HTTP."""

import argparse
import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import uvloop

from emceepee import __version__
from emceepee.backends.spec import root_uri
from emceepee.cli.process_setup import STDERR, STDIN, STDOUT, fill_closed, hide_process, keep_freed_memory
from emceepee.cli.state import add_state_command, run_state
from emceepee.config import (
    CONFIG_VARIABLE,
    NOTICES,
    TOKEN_VARIABLE,
    Config,
    ConfigError,
    HttpConfig,
    ReplicaConfig,
    load,
    locate_state,
)
from emceepee.server.gc_tuning import collect_less_while_loading
from emceepee.store.location import MEMORY, SQLITE, STATE_VARIABLE, SYNCS
from emceepee.store.store import StoreError
from emceepee.telemetry import logs

USAGE_ERROR = 2
MOST_SLOTS = 9999
SHORTEST_TOKEN = 16  # characters; a shorter one may be guessed
# The = signs at the end of a base64 token are its own.
_NAMED_TOKEN = re.compile(r"(?P<name>[A-Za-z][\w.@-]*)=(?P<token>[^=].*)", re.DOTALL)
log = logs.EventLog("cli")


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    closed = fill_closed()
    options = build_parser().parse_args(arguments)
    if options.command == "state":
        return run_state(options)
    try:
        config = _config(options)
        if options.command == "serve":
            if config.console_port is not None:
                raise ConfigError("--console is for standard input and output; serve has the console at its own port")
            if config.session_name is not None:
                raise ConfigError("--session is for standard input and output; callers of serve say ?session=NAME")
            replicas = ReplicaConfig.of(options.replica_listen, options.replica_tls, options.replica_slot)
            config = replace(config, http=_http_config(options), replicas=replicas)
            config.http.check()
        usual = SQLITE if options.command == "serve" else MEMORY
        config = replace(config, location=locate_state(config, options.state, os.environ, usual=usual))
        if config.session_name is not None and config.location.path is None:
            raise ConfigError("--session takes up a session that was kept: say --state sqlite, too")
    except ConfigError as error:
        sys.stderr.write(f"emceepee: {error}\n")
        return USAGE_ERROR
    keep_freed_memory()
    hide_process(os.environ)
    try:
        logs.configure(level=config.log_level, style=config.log_format, file=config.log_file)
    except OSError as error:
        sys.stderr.write(f"emceepee: the log file {config.log_file} cannot be used: {error.strerror}\n")
        return USAGE_ERROR
    if config.ignored:
        log.warning("config_keys_ignored", keys=list(config.ignored))
    if options.command == "serve":
        _warn_of_short_tokens(config.http)
        return _serve(config)
    if closed & {STDIN, STDOUT}:
        sys.stderr.write("emceepee: standard input or output is closed, so there is nobody to serve\n")
        return USAGE_ERROR
    stdout = _private_stdout()
    with collect_less_while_loading():
        from emceepee.app import run_stdio  # here: --version and a mistake in the configuration need not wait for it

    return _run(run_stdio(config, stdin=STDIN, stdout=stdout, invite=_inviting(config)), config)


def main_http() -> int:
    """`emceepee-http` is `emceepee serve`."""
    return main(["serve", *sys.argv[1:]])


def _serve(config: Config) -> int:
    with collect_less_while_loading():
        from emceepee.app import run_http

    try:
        return _run(run_http(config, announce=_announce, invite=_inviting(config)), config)
    except OSError as error:
        sys.stderr.write(f"emceepee: cannot listen on {config.http.host}:{config.http.port}: {error}\n")
        return USAGE_ERROR


def _run(work: Coroutine[Any, Any, None], config: Config) -> int:
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(work)
        return 0
    except StoreError as error:
        sys.stderr.write(f"emceepee: {error}\n")
        return USAGE_ERROR
    finally:
        if config.link_file is not None:  # what it opened is closed
            config.link_file.unlink(missing_ok=True)


def _announce(address: str) -> None:
    logs.tell_operator(f"emceepee {__version__} serves MCP at {address}/mcp (Ctrl-C ends it)")


def _inviting(config: Config) -> Callable[[str], None]:
    """Says where the console is to whoever started us. A log file is kept, so it gets the address without the code."""
    hint = "" if config.http.sole_principal is not None else " (log in with a token)"

    def invite(link: str) -> None:
        logs.tell_operator(f"emceepee console at {link}{hint}")
        if config.link_file is not None:
            try:
                _write_private(config.link_file, f"{link}\n")
            except OSError as error:
                log.warning("link_file_not_written", file=str(config.link_file), error=str(error))
        if config.log_file is not None:
            log.info("console_open", address=link)

    return invite


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="emceepee",
        description="An MCP proxy: gives any tool-capable client the whole protocol through a fixed set of tools. "
        "Without a command it serves one caller on standard input and output.",
    )
    _common(parser)
    parser.add_argument(
        "--console",
        type=_port_number,
        metavar="PORT",
        help="serve a page for people at http://127.0.0.1:PORT; standard error has the link; 0 takes a free port",
    )
    parser.add_argument("--session", metavar="NAME", help="take up the session of that name; needs --state sqlite")
    parser.add_argument("--version", action="version", version=f"emceepee {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    words = "Serve many callers over Streamable HTTP at /mcp."
    # Without defaults of its own: else what stands before the command would count for nothing.
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    _common(shared)
    _serve_options(commands.add_parser("serve", help=words, description=words, parents=[shared]))
    place = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    _place_options(place)
    add_state_command(commands, [place])
    return parser


def _place_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="FILE", help=f"server configurations; or set {CONFIG_VARIABLE}")
    parser.add_argument(
        "--state",
        metavar="WHERE",
        help=f"memory, sqlite or sqlite:PATH: where sessions and added servers are kept; or set {STATE_VARIABLE} "
        "(default: sqlite, but memory on standard input and output)",
    )


def _common(parser: argparse.ArgumentParser) -> None:
    _place_options(parser)
    parser.add_argument("--root", action="append", metavar="DIR", help="a root offered to servers; may be repeated")
    parser.add_argument(
        "--notices",
        choices=NOTICES,
        help="where replies say what is new: all: in content and structured content (default); blocks: in content only",
    )
    parser.add_argument("--state-sync", choices=SYNCS, help="full: what is saved survives a power cut, too")
    parser.add_argument("--log-level", choices=logs.LEVELS, help="default: info")
    parser.add_argument("--log-format", choices=logs.FORMATS, help="default: text")
    parser.add_argument("--log-file", type=Path, metavar="FILE", help="default: standard error")
    parser.add_argument("--link-file", type=Path, metavar="FILE", help="write the newest link to the console there")


def _serve_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, this machine only")
    parser.add_argument("--port", type=_port_number, help="default: 8080, or the variable PORT; 0 takes a free one")
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


def _config(options: argparse.Namespace) -> Config:
    config = load(options.config)
    return replace(
        config,
        roots=tuple(root_uri(root) for root in options.root or ()) or config.roots,
        notices=options.notices or config.notices,
        log_level=options.log_level or config.log_level,
        log_format=options.log_format or config.log_format,
        log_file=options.log_file,
        link_file=options.link_file,
        console_port=options.console,
        state_sync=options.state_sync or config.state_sync,
        session_name=options.session,
    )


def _http_config(options: argparse.Namespace) -> HttpConfig:
    given = options.token or ([os.environ[TOKEN_VARIABLE]] if os.environ.get(TOKEN_VARIABLE) else [])
    return HttpConfig(
        host=options.host,
        port=options.port if options.port is not None else _port(os.environ.get("PORT", "8080")),
        tokens=_named_tokens(given),
        allow_hosts=tuple(options.allow_host),
        allow_origins=tuple(options.allow_origin),
        allow_commands=options.allow_commands,
        allow_urls=tuple(options.allow_url),
        require_session=options.require_session,
        insecure=options.insecure,
        oauth_issuer=options.oauth_issuer,
        oauth_resource=options.oauth_resource,
        oauth_scopes=tuple(options.oauth_scope),
        has_console=not options.no_console,
    )


def _named_tokens(given: list[str]) -> dict[str, str]:
    """Each token's principal. Those without a name are principals of their own."""
    named: dict[str, str] = {}
    for number, item in enumerate(given, 1):
        found = _NAMED_TOKEN.fullmatch(item)
        name, token = (found["name"], found["token"]) if found else (f"token {number}", item)
        if not token.strip():
            raise ConfigError("--token: expected a token, found nothing")
        named[token] = name
    return named


def _warn_of_short_tokens(http: HttpConfig) -> None:
    for token, principal in http.tokens.items():
        if len(token) < SHORTEST_TOKEN:
            log.warning("token_is_short", principal=principal, characters=len(token), least=SHORTEST_TOKEN)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ConfigError(f"PORT: expected a port number, found {text!r}")
    return int(text)


def _port_number(text: str) -> int:
    try:
        return _port(text)
    except ConfigError:
        raise argparse.ArgumentTypeError(f"expected a port number, found {text!r}") from None


def _slot_number(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_SLOTS:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {MOST_SLOTS}, found {text!r}")
    return int(text)


def _private_stdout() -> int:
    """Keep standard output for the protocol alone: whatever else prints there, prints to standard error."""
    protocol = os.dup(STDOUT)
    os.set_inheritable(protocol, False)
    sys.stdout.flush()
    os.dup2(STDERR, STDOUT)
    return protocol


def _write_private(path: Path, text: str) -> None:
    """Put a new file in the place of whatever is there, which may be someone else's, or a link. Raises: OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # made with mode 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
