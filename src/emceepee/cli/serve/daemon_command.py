"""`emceepee daemon`, to which callers attach. It reports `ready`, or an error, to the process that started it."""

import argparse
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

from emceepee.cli.serve.config_digest import digest
from emceepee.cli.serve.process_setup import STDIN, STDOUT, hide_process, keep_freed_memory
from emceepee.cli.serve.restarts import CANNOT_START
from emceepee.cli.terminal import complain
from emceepee.daemon.daemon_folder import LINK_NAME, UnsafePlace, open_folder, runtime_folder
from emceepee.daemon.daemon_socket import Identity, listening_socket
from emceepee.daemon.launcher import READY, NoDaemon
from emceepee.paths import IDLE_EXIT_SECONDS, current_folder


def run_daemon_command(options: argparse.Namespace) -> int:
    if options.detach and os.fork():  # fork before any import that starts threads
        os._exit(0)
    from emceepee.config.settings import ConfigError
    from emceepee.store.store import StoreError

    try:
        return _run(options)
    except (ConfigError, NoDaemon, StoreError, UnsafePlace, OSError, RuntimeError) as error:
        complain(error)
        if options.detach:
            _tell_starter(str(error))
        return CANNOT_START


def _run(options: argparse.Namespace) -> int:
    """Raises: ConfigError, NoDaemon, StoreError, UnsafePlace, OSError, RuntimeError."""
    from emceepee import __version__
    from emceepee.cli.serve.announcements import inviting, link_file_removed
    from emceepee.cli.serve.serve_command import followed_file, run_until_done, usable_config, warn_of_configuration
    from emceepee.server.garbage_collector import collect_less_while_loading
    from emceepee.store.location import SQLITE
    from emceepee.telemetry import logs

    folder = open_folder(runtime_folder(os.environ))
    read_digest = partial(digest, dict(vars(options)), dict(os.environ), current_folder())
    identity = Identity(version=__version__, configuration=read_digest(), pid=os.getpid())
    options = _seen_from_anywhere(options)
    source = followed_file(options)
    config = replace(usable_config(options, usual_state=SQLITE), session_name=None)
    if config.console_port is not None:
        config = replace(config, link_file=config.link_file or folder / LINK_NAME)
    keep_freed_memory()
    hide_process(os.environ)
    with listening_socket(folder) as listener:
        logs.configure(level=config.log_level, style=config.log_format, file=config.log_file)
        warn_of_configuration(config)
        os.chdir(_home())
        with collect_less_while_loading():
            from emceepee.daemon.daemon_app import run_daemon
            from emceepee.daemon.followed_identity import FollowedIdentity

        def ready() -> None:
            if options.detach:
                _tell_starter(READY)
            else:
                logs.tell_operator(f"emceepee {__version__} listens at {listener.getsockname()} (Ctrl-C to stop)")

        idle_exit = IDLE_EXIT_SECONDS if options.detach and options.idle_exit is None else options.idle_exit
        with link_file_removed(config):
            run_until_done(
                run_daemon(
                    config,
                    listener,
                    FollowedIdentity(identity, read_digest),
                    idle_exit=idle_exit,
                    ready=ready,
                    invite=inviting(config),
                    source=source,
                )
            )
    return 0


def _seen_from_anywhere(options: argparse.Namespace) -> argparse.Namespace:
    """Make all paths absolute: the daemon changes its working directory, and opens and reloads files later."""
    from emceepee.backends.spec import root_uri
    from emceepee.config.file_reader import find_file

    file = find_file(options.config)
    given = vars(options)
    named = {name: value.absolute() for name, value in given.items() if isinstance(value, Path)}
    config = options.config if file is None else os.path.abspath(file)
    return argparse.Namespace(
        **given | named | {"config": config, "root": [root_uri(root) for root in options.root or ()]}
    )


def _home() -> Path:
    """Return the working directory for servers without `cwd`: the same for all callers, and unlikely to be deleted."""
    home = Path.home()
    return home if home.is_dir() else Path("/")


def _tell_starter(word: str) -> None:
    """Write a line to standard output, then redirect standard input and output to the null device."""
    os.write(STDOUT, f"{word}\n".encode())
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, STDOUT)
    os.dup2(null, STDIN)
    os.close(null)
