"""Turn flags into a running emceepee: one caller on standard input and output, or many over HTTP with `serve`."""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from emceepee.backends.spec import root_uri
from emceepee.cli.egress_options import egress_settings
from emceepee.cli.serve.announcements import announce, inviting, link_file_removed
from emceepee.cli.serve.process_setup import STDERR, STDIN, STDOUT, greet_person, hide_process, keep_freed_memory
from emceepee.cli.serve.restarts import CANNOT_START
from emceepee.cli.serve.telemetry_options import common_telemetry, serve_telemetry
from emceepee.cli.serve.worker import FAILED, LINK, READY, NoWorker, WorkerSpec, claim_worker, worker_command
from emceepee.cli.serving_arguments import NAMED_TOKEN
from emceepee.cli.terminal import complain
from emceepee.clock import SystemClock
from emceepee.config.file_reader import find_file, load, log_warnings, warn_of_problems
from emceepee.config.settings import Config, ConfigError, HttpConfig, ReplicaConfig, check_secrets, locate_state
from emceepee.config.source import ConfigSource, stamp_of
from emceepee.paths import NO_CODEMODE_VARIABLE, TOKEN_VARIABLE
from emceepee.server.garbage_collector import collect_less_while_loading
from emceepee.store.location import MEMORY, SQLITE, StateLocation
from emceepee.store.store import StoreError
from emceepee.surface import Surface
from emceepee.telemetry import logs

USAGE_ERROR = CANNOT_START
SHORTEST_TOKEN = 16  # characters; a shorter token can be guessed
Tell = Callable[[str], object]
log = logs.EventLog("cli")


def serve(options: argparse.Namespace, arguments: list[str] | None, closed: Set[int]) -> int:
    """Run the server and return the exit code. `closed` are the standard streams that were closed at startup."""
    source = followed_file(options)
    try:
        worker = claim_worker(os.environ) if options.command == "serve" else None
        config = _config(options, options.config)
        if options.command == "serve":
            if config.console_port is not None:
                raise ConfigError("--console is for standard input and output; serve has the console at its own port")
            if config.session_name is not None:
                raise ConfigError(
                    "--session is for standard input and output; callers of serve add ?session=NAME to the URL"
                )
            replicas = ReplicaConfig.of(options.replica_listen, options.replica_tls, options.replica_slot)
            http = _http_config(options, shares_port=worker is not None)
            config = replace(config, http=http, replicas=replicas)
            config.http.check()
            index = None if worker is None else worker.index
            telemetry = serve_telemetry(options, config.telemetry, http, worker=index, workers=options.workers)
            config = replace(config, telemetry=telemetry)
        config = _with_state(config, options, usual=SQLITE if options.command == "serve" else MEMORY)
        if config.session_name is not None and config.location.is_memory:
            raise ConfigError("--session resumes a stored session: also pass --state sqlite")
        count = options.workers if options.command == "serve" and worker is None else 1
        if count > 1 and config.location.is_memory:
            raise ConfigError("--workers needs state that its processes share: also pass --state sqlite")
        if count > 1 and (config.replicas.slot is not None or config.replicas.listen is not None):
            raise ConfigError(
                "--replica-slot and --replica-listen apply to one process and cannot be combined with --workers"
            )
    except (ConfigError, NoWorker) as error:
        complain(error)
        return USAGE_ERROR
    keep_freed_memory()
    hide_process(os.environ)
    try:
        fields = {} if worker is None else {"worker": worker.index}
        logs.configure(level=config.log_level, style=config.log_format, file=config.log_file, fields=fields)
    except OSError as error:
        complain(f"the log file {config.log_file} cannot be used: {error.strerror}")
        return USAGE_ERROR
    if worker is not None:
        return _serve_as(worker, config, source)
    warn_of_configuration(config)
    if options.command == "serve":
        _warn_of_short_tokens(config.http)
        return _serve(config, source) if count == 1 else _serve_with(count, config, arguments)
    if closed & {STDIN, STDOUT}:
        complain("standard input or output is closed, so no client can connect")
        return USAGE_ERROR
    greet_person()
    stdout = _private_stdout()
    with collect_less_while_loading():
        from emceepee.app.stdio_app import run_stdio  # imported late: configuration errors must not wait for it

    try:
        with link_file_removed(config):
            run_until_done(run_stdio(config, stdin=STDIN, stdout=stdout, invite=inviting(config), source=source))
    except StoreError as error:
        complain(error)
        return USAGE_ERROR
    return 0


def _serve(config: Config, source: ConfigSource | None) -> int:
    with link_file_removed(config):
        failure = _run_http(config, source, announce=announce, invite=inviting(config))
    if failure is not None:
        complain(failure)
    return 0 if failure is None else USAGE_ERROR


def _serve_as(worker: WorkerSpec, config: Config, source: ConfigSource | None) -> int:
    """Serve as a worker. The parent process prints all messages, so report them to it."""
    worker.end_with_parent()
    link = partial(worker.report, LINK) if worker.index == 0 else None
    failure = _run_http(config, source, announce=partial(worker.report, READY), invite=link)
    if failure is not None:
        worker.report(FAILED, failure)
    return 0 if failure is None else USAGE_ERROR


def _serve_with(count: int, config: Config, arguments: list[str] | None) -> int:
    from emceepee.cli.serve.worker_processes import Announcements, WorkerProcesses, reserve_port

    try:
        reserved = reserve_port(config.http.host, config.http.port)
    except OSError as error:
        complain(_cannot_listen(config, error))
        return USAGE_ERROR
    with reserved, link_file_removed(config), asyncio.Runner() as runner:
        command = worker_command(arguments, reserved.getsockname()[1])
        told = Announcements(ready=announce, link=inviting(config), failed=complain)
        return runner.run(WorkerProcesses(command, count, told, SystemClock()).run())


def _run_http(config: Config, source: ConfigSource | None, *, announce: Tell, invite: Tell | None) -> str | None:
    """Serve over HTTP until shutdown. Return None, or the reason why serving failed."""
    with collect_less_while_loading():
        from emceepee.app.http_app import run_http

    try:
        run_until_done(run_http(config, announce=announce, invite=invite, source=source))
    except StoreError as error:
        return str(error)
    except OSError as error:
        return _cannot_listen(config, error)
    return None


def _cannot_listen(config: Config, error: OSError) -> str:
    return f"cannot listen on {config.http.host}:{config.http.port}: {error}"


def run_until_done(work: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(work)


def followed_file(options: argparse.Namespace) -> ConfigSource | None:
    """Return the configuration file to follow, if any. Call this before the file is read."""
    if (name := find_file(options.config)) is None:
        return None
    file = Path(name)
    return ConfigSource(
        file=file, read=partial(_config, options, name), stamp=stamp_of(file), is_watched=not options.no_reload
    )


def _config(options: argparse.Namespace, path: str | None) -> Config:
    return _with_options(load(path), options)


def _with_options(config: Config, options: argparse.Namespace) -> Config:
    """Raises: ConfigError."""
    if options.max_result_bytes is not None:
        config = replace(config, limits=replace(config.limits, largest_result_bytes=options.max_result_bytes))
    return replace(
        config,
        egress=egress_settings(options.ca_bundle, os.environ),
        roots=tuple(root_uri(root) for root in options.root or ()) or config.roots,
        notices=options.notices or config.notices,
        has_codemode=not (options.no_codemode or os.environ.get(NO_CODEMODE_VARIABLE, "") not in ("", "0")),
        surface=Surface(options.surface) if options.surface else config.surface,
        native_elicitation=options.native_elicitation or config.native_elicitation,
        log_level=options.log_level or config.log_level,
        log_format=options.log_format or config.log_format,
        log_file=options.log_file,
        link_file=options.link_file,
        console_port=options.console,
        state_sync=options.state_sync or config.state_sync,
        secrets=options.secrets or config.secrets,
        session_name=options.session,
        telemetry=common_telemetry(options),
    )


def usable_config(options: argparse.Namespace, *, usual_state: str) -> Config:
    """Load the configuration without the options that only `serve` has. Raises: ConfigError."""
    return _with_state(_config(options, options.config), options, usual=usual_state)


def check_config(config: Config, options: argparse.Namespace, *, usual_state: str) -> tuple[str, ...]:
    """Return every reason why emceepee would not start with the configuration that was read from the file."""
    try:
        _, problems = _place_state(_with_options(config, options), options, usual=usual_state)
    except ConfigError as error:
        return (str(error),)
    return problems


def _with_state(config: Config, options: argparse.Namespace, *, usual: str) -> Config:
    """Set the state location, and reject conflicting settings. Raises: ConfigError."""
    config, problems = _place_state(config, options, usual=usual)
    if problems:
        raise ConfigError("; ".join(problems))
    return config


def _place_state(config: Config, options: argparse.Namespace, *, usual: str) -> tuple[Config, tuple[str, ...]]:
    """Return the configuration with its state location, and the settings that prevent a start."""
    problems: list[str] = []
    try:
        location = locate_state(config, options.state, os.environ, usual=usual)
    except ConfigError as error:
        problems.append(str(error))
        location = StateLocation(path=Path(SQLITE))  # a placeholder, to find the other mistakes
    config = replace(config, location=location)
    try:
        check_secrets(config)
    except ConfigError as error:
        problems.append(str(error))
    if config.surface is not Surface.FULL and not config.has_codemode:
        problems.append(f"--surface {config.surface} lists codemode_search and cannot be combined with --no-codemode")
    return config, tuple(problems)


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
    """Map each token to its principal. A token without a name is a principal of its own."""
    named: dict[str, str] = {}
    for number, item in enumerate(given, 1):
        found = NAMED_TOKEN.fullmatch(item)
        name, token = (found["name"], found["token"]) if found else (f"token {number}", item)
        if not token.strip():
            raise ConfigError("--token: expected a token, found an empty value")
        named[token] = name
    return named


def warn_of_configuration(config: Config) -> None:
    warn_of_problems(config.problems)
    log_warnings(config.warnings)
    if config.ignored:
        log.warning("config_keys_ignored", keys=list(config.ignored))
    if config.unverified:
        log.warning("certificates_not_checked", servers=config.unverified, because="tls.insecure")
    if config.spelled_out:
        log.info("secrets_in_configuration", keys=list(config.spelled_out), instead="${file:PATH} or ${env:NAME}")


def _warn_of_short_tokens(http: HttpConfig) -> None:
    for token, principal in http.tokens.items():
        if len(token) < SHORTEST_TOKEN:
            log.warning("token_too_short", principal=principal, characters=len(token), least=SHORTEST_TOKEN)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise ConfigError(f"PORT: expected a port number, found {text!r}")
    return int(text)


def _private_stdout() -> int:
    """Reserve standard output for the protocol: all other output to it goes to standard error instead."""
    protocol = os.dup(STDOUT)
    os.set_inheritable(protocol, False)
    sys.stdout.flush()
    os.dup2(STDERR, STDOUT)
    return protocol
