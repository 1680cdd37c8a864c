"""Code shared by the commands that use servers: configuration, access to tools, errors, and exit codes."""

import argparse
import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace

from emceepee.backends.spec import BackendSpec
from emceepee.cli.client_changes import say_json
from emceepee.cli.egress_options import egress_settings
from emceepee.cli.terminal import DONE, FAILED, USAGE, complain
from emceepee.cli.use.call_arguments import BadArgument
from emceepee.cli.use.tool_caller import CallFailed, ToolCaller
from emceepee.config.file_reader import load
from emceepee.config.settings import Config, ConfigError, locate_state
from emceepee.paths import TOKEN_VARIABLE
from emceepee.store.location import MEMORY
from emceepee.store.store import StoreError
from emceepee.telemetry import logs
from emceepee.wire.json_types import JsonObject

MOST_PAGES = 1000
Work = Callable[[ToolCaller], Awaitable[int]]


def run_with_tools(options: argparse.Namespace, work: Work) -> int:
    """Run the work with a tool caller, and return the exit code."""
    try:
        config = _config(options)
        logs.configure(level="error")
        code = asyncio.run(_run(options, config, work))
        sys.stdout.flush()
    except (ConfigError, BadArgument) as error:
        return _fail(options, str(error), USAGE)
    except (CallFailed, StoreError) as error:
        return _fail(options, str(error), FAILED)
    except KeyboardInterrupt:
        complain("stopped")
        return FAILED
    except BrokenPipeError:  # the reader closed the pipe early, for example `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    return code


def _fail(options: argparse.Namespace, words: str, code: int) -> int:
    if options.json:
        say_json({"error": words})
    complain(words)
    return code


def _config(options: argparse.Namespace) -> Config:
    """Raises: ConfigError."""
    if options.url is not None:
        if getattr(options, "record", None) is not None:
            raise ConfigError("--record is for servers that this command starts: with --url, record on the console")
        return Config(egress=egress_settings(options.ca_bundle, os.environ))
    config = load(options.config, os.environ, only=options.server)
    if not config.servers:
        raise ConfigError(
            "no servers are configured: add one with `emceepee servers add`, import those of your clients with "
            "`emceepee import`, specify a file with --config, or a running emceepee serve with --url"
        )
    return replace(
        config,
        servers=_recorded(config.servers, options),
        egress=egress_settings(options.ca_bundle, os.environ),
        location=locate_state(config, options.state, os.environ, usual=MEMORY),
    )


def _recorded(servers: tuple[BackendSpec, ...], options: argparse.Namespace) -> tuple[BackendSpec, ...]:
    """Enable recording of the chosen server if --record is given. Raises: ConfigError."""
    file = getattr(options, "record", None)
    if file is None:
        return servers
    if options.server is None:
        raise ConfigError("--record records one server: specify it")
    from emceepee.backends.recording.recordings import open_recording

    try:
        descriptor, _ = open_recording(file)
    except OSError as error:
        raise ConfigError(f"--record {file}: {error.strerror or error}") from None
    os.close(descriptor)
    path = str(file.absolute())
    return tuple(replace(spec, record=path) if spec.name == options.server else spec for spec in servers)


async def _run(options: argparse.Namespace, config: Config, work: Work) -> int:
    if options.url is None:
        async with ToolCaller.here(config) as caller:
            return await work(caller)
    token = options.token or os.environ.get(TOKEN_VARIABLE)
    async with ToolCaller.at(options.url, token, config) as caller:
        return await work(caller)


async def list_all(caller: ToolCaller, tool: str, key: str, arguments: JsonObject) -> JsonObject:
    """Collect all pages of a listing: entries under `key`, and errors of servers that could not be queried."""
    found: JsonObject = {key: [], "errors": []}
    cursor: object = None
    for _ in range(MOST_PAGES):
        page = await caller.value(tool, arguments if cursor is None else arguments | {"cursor": cursor})
        found[key] += page.get(key) or []
        found["errors"] = page.get("errors") or found["errors"]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    return found
