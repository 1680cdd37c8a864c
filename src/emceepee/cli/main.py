"""`emceepee`: serve one caller on standard input and output, or with `serve` many over HTTP."""

import argparse
import asyncio
import os
import re
import sys
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from emceepee import __version__
from emceepee.backends.http1.egress import EgressSettings
from emceepee.backends.http1.proxies import BadProxy, ProxyRules
from emceepee.backends.http1.tls import BadTlsFile
from emceepee.backends.spec import root_uri
from emceepee.cli.announcements import announce, inviting, link_file_removed
from emceepee.cli.process_setup import STDERR, STDIN, STDOUT, fill_closed, hide_process, keep_freed_memory
from emceepee.cli.restarts import CANNOT_START
from emceepee.cli.state import add_state_command, run_state
from emceepee.cli.worker import FAILED, LINK, MOST_WORKERS, READY, NoWorker, Worker, claim_worker, worker_command
from emceepee.clock import SystemClock
from emceepee.config import (
    CONFIG_VARIABLE,
    NO_CODEMODE_VARIABLE,
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

MOST_SLOTS = 9999
USAGE_ERROR = CANNOT_START
SHORTEST_TOKEN = 16  # characters; a shorter one may be guessed
# The = signs at the end of a base64 token are its own.
_NAMED_TOKEN = re.compile(r"(?P<name>[A-Za-z][\w.@-]*)=(?P<token>[^=].*)", re.DOTALL)
Tell = Callable[[str], object]
log = logs.EventLog("cli")


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    closed = fill_closed()
    options = build_parser().parse_args(arguments)
    if options.command == "state":
        return run_state(options)
    try:
        worker = claim_worker(os.environ) if options.command == "serve" else None
        config = _config(options)
        if options.command == "serve":
            if config.console_port is not None:
                raise ConfigError("--console is for standard input and output; serve has the console at its own port")
            if config.session_name is not None:
                raise ConfigError("--session is for standard input and output; callers of serve say ?session=NAME")
            replicas = ReplicaConfig.of(options.replica_listen, options.replica_tls, options.replica_slot)
            http = _http_config(options, shares_port=worker is not None)
            config = replace(config, http=http, replicas=replicas)
            config.http.check()
        usual = SQLITE if options.command == "serve" else MEMORY
        config = replace(config, location=locate_state(config, options.state, os.environ, usual=usual))
        if config.session_name is not None and config.location.is_memory:
            raise ConfigError("--session takes up a session that was kept: say --state sqlite, too")
        count = options.workers if options.command == "serve" and worker is None else 1
        if count > 1 and config.location.is_memory:
            raise ConfigError("--workers needs state that its processes share: say --state sqlite, too")
        if count > 1 and (config.replicas.slot is not None or config.replicas.listen is not None):
            raise ConfigError("--replica-slot and --replica-listen are of one process: they do not go with --workers")
    except (ConfigError, NoWorker) as error:
        sys.stderr.write(f"emceepee: {error}\n")
        return USAGE_ERROR
    keep_freed_memory()
    hide_process(os.environ)
    try:
        fields = {} if worker is None else {"worker": worker.index}
        logs.configure(level=config.log_level, style=config.log_format, file=config.log_file, fields=fields)
    except OSError as error:
        sys.stderr.write(f"emceepee: the log file {config.log_file} cannot be used: {error.strerror}\n")
        return USAGE_ERROR
    if worker is not None:
        return _serve_as(worker, config)
    _warn_of_configuration(config)
    if options.command == "serve":
        _warn_of_short_tokens(config.http)
        return _serve(config) if count == 1 else _serve_with(count, config, arguments)
    if closed & {STDIN, STDOUT}:
        sys.stderr.write("emceepee: standard input or output is closed, so there is nobody to serve\n")
        return USAGE_ERROR
    stdout = _private_stdout()
    with collect_less_while_loading():
        from emceepee.app import run_stdio  # here: --version and a mistake in the configuration need not wait for it

    try:
        with link_file_removed(config):
            _run(run_stdio(config, stdin=STDIN, stdout=stdout, invite=inviting(config)))
    except StoreError as error:
        sys.stderr.write(f"emceepee: {error}\n")
        return USAGE_ERROR
    return 0


def main_http() -> int:
    """`emceepee-http` is `emceepee serve`."""
    return main(["serve", *sys.argv[1:]])


def _serve(config: Config) -> int:
    with link_file_removed(config):
        failure = _run_http(config, announce=announce, invite=inviting(config))
    if failure is not None:
        sys.stderr.write(f"emceepee: {failure}\n")
    return 0 if failure is None else USAGE_ERROR


def _serve_as(worker: Worker, config: Config) -> int:
    """What is to be said, the parent says."""
    worker.end_with_parent()
    link = partial(worker.report, LINK) if worker.index == 0 else None
    failure = _run_http(config, announce=partial(worker.report, READY), invite=link)
    if failure is not None:
        worker.report(FAILED, failure)
    return 0 if failure is None else USAGE_ERROR


def _serve_with(count: int, config: Config, arguments: list[str] | None) -> int:
    from emceepee.cli.workers import Announcements, Workers, reserve_port

    def fail(sentence: str) -> None:
        sys.stderr.write(f"emceepee: {sentence}\n")

    try:
        reserved = reserve_port(config.http.host, config.http.port)
    except OSError as error:
        fail(_cannot_listen(config, error))
        return USAGE_ERROR
    with reserved, link_file_removed(config), asyncio.Runner() as runner:
        command = worker_command(arguments, reserved.getsockname()[1])
        told = Announcements(ready=announce, link=inviting(config), failed=fail)
        return runner.run(Workers(command, count, told, SystemClock()).run())


def _run_http(config: Config, *, announce: Tell, invite: Tell | None) -> str | None:
    """None, or why it cannot serve."""
    with collect_less_while_loading():
        from emceepee.app import run_http

    try:
        _run(run_http(config, announce=announce, invite=invite))
    except StoreError as error:
        return str(error)
    except OSError as error:
        return _cannot_listen(config, error)
    return None


def _cannot_listen(config: Config, error: OSError) -> str:
    return f"cannot listen on {config.http.host}:{config.http.port}: {error}"


def _run(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


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
        help="where sessions and added servers are kept: memory, sqlite, sqlite:PATH, or for several machines "
        f"redis://[USER:PASSWORD@]HOST[:PORT][/DB][?prefix=NAME]; or set {STATE_VARIABLE} "
        "(default: sqlite, but memory on standard input and output)",
    )


def _common(parser: argparse.ArgumentParser) -> None:
    _place_options(parser)
    parser.add_argument("--root", action="append", metavar="DIR", help="a root offered to servers; may be repeated")
    parser.add_argument(
        "--ca-bundle",
        type=Path,
        metavar="FILE",
        help="trust the CAs in this file, too, when connecting to servers and authorization servers",
    )
    parser.add_argument(
        "--notices",
        choices=NOTICES,
        help="where replies say what is new: all: in content and structured content (default); blocks: in content only",
    )
    parser.add_argument(
        "--no-codemode",
        action="store_true",
        help=f"no codemode_search and no codemode_execute: nobody runs scripts; or set {NO_CODEMODE_VARIABLE}=1",
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
        "--public-url", metavar="URL", help="where browsers reach this server, to come back from logins to servers"
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
        egress=_egress(options.ca_bundle),
        roots=tuple(root_uri(root) for root in options.root or ()) or config.roots,
        notices=options.notices or config.notices,
        has_codemode=not (options.no_codemode or os.environ.get(NO_CODEMODE_VARIABLE, "") not in ("", "0")),
        log_level=options.log_level or config.log_level,
        log_format=options.log_format or config.log_format,
        log_file=options.log_file,
        link_file=options.link_file,
        console_port=options.console,
        state_sync=options.state_sync or config.state_sync,
        session_name=options.session,
    )


def _egress(ca_bundle: Path | None) -> EgressSettings:
    """Raises: ConfigError."""
    try:
        settings = EgressSettings(proxies=ProxyRules.of(os.environ), ca_bundle=ca_bundle)
        if ca_bundle is not None:
            settings.contexts().of(None)
    except BadProxy as error:
        raise ConfigError(str(error)) from None
    except BadTlsFile as error:
        raise ConfigError(f"--ca-bundle: {error}") from None
    return settings


def _http_config(options: argparse.Namespace, *, shares_port: bool) -> HttpConfig:
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
        public_url=options.public_url,
        has_console=not options.no_console,
        shares_port=shares_port,
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


def _warn_of_configuration(config: Config) -> None:
    if config.ignored:
        log.warning("config_keys_ignored", keys=list(config.ignored))
    if config.unverified:
        log.warning("certificates_not_checked", servers=config.unverified, because="tls.insecure")
    if config.spelled_out:
        log.info("secrets_in_configuration", keys=list(config.spelled_out), instead="${file:PATH} or ${env:NAME}")


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


def _worker_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {MOST_WORKERS}, found {text!r}")
    return int(text)


def _private_stdout() -> int:
    """Keep standard output for the protocol alone: whatever else prints there, prints to standard error."""
    protocol = os.dup(STDOUT)
    os.set_inheritable(protocol, False)
    sys.stdout.flush()
    os.dup2(STDERR, STDOUT)
    return protocol
