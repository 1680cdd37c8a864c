"""`emceepee --attach`: relay to the daemon, or else run standalone. Loads nothing of the protocol stack."""

import argparse
import os
import signal
import sys
from functools import partial
from pathlib import Path

from emceepee import __version__
from emceepee.bounds.files import read_file
from emceepee.cli.serve.config_digest import digest
from emceepee.cli.serve.process_setup import STDIN, STDOUT, greet_person, hide_process
from emceepee.cli.serve.restarts import CANNOT_START
from emceepee.cli.terminal import complain
from emceepee.daemon.daemon_folder import UnsafePlace, open_folder, runtime_folder
from emceepee.daemon.greeting import DaemonHello, Welcome
from emceepee.daemon.launcher import Attached, NoDaemon, reach, reach_or_start
from emceepee.daemon.pipe import DaemonPipe
from emceepee.paths import ATTACH_AUTO, ATTACH_REQUIRE, current_folder
from emceepee.terminal_text import printable

NAME_BYTES = 16
LONGEST_LINK = 4 << 10  # bytes; limit for the file with the link to the console


def attach(options: argparse.Namespace, arguments: list[str] | None) -> int | None:
    """Return the exit code, or None if no daemon can be reached and emceepee must run standalone."""
    session = options.session or f"attached-{os.urandom(NAME_BYTES).hex()}"
    # Capture the working directory now: it may be deleted later, and relative paths refer to it.
    reach_it = partial(_reach, options, session, daemon_command(arguments), current_folder())
    try:
        attached = reach_it()
    except NoDaemon as error:
        if options.attach == ATTACH_REQUIRE:
            complain(f"cannot attach to a daemon: {error}")
            return CANNOT_START
        complain(f"runs without the daemon: {error}")
        return None
    greet_person()
    hide_process(os.environ)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the default action suffices: this process has nothing to clean up
    if attached.welcome.notice is not None:
        complain(attached.welcome.notice)
    if options.console is not None:
        _show_console(attached.welcome)
    DaemonPipe(attached, reach_it, stdin=STDIN, stdout=STDOUT).run()
    return 0


def _reach(options: argparse.Namespace, session: str, command: list[str], here: Path) -> Attached:
    """Raises: NoDaemon."""
    try:
        folder = open_folder(runtime_folder(os.environ))
        hello = DaemonHello(
            version=__version__,
            # computed for each attempt: the file may have changed
            configuration=digest(vars(options), os.environ, here),
            session=session,
            is_kept=options.session is not None,
        )
        if options.attach == ATTACH_AUTO:
            return reach_or_start(folder, hello, command)
        attached = reach(folder, hello)
    except (UnsafePlace, OSError, RuntimeError) as error:
        raise NoDaemon(str(error)) from error
    if attached is None:
        raise NoDaemon("none is running; start one with `emceepee daemon`, or pass --attach auto")
    return attached


def daemon_command(arguments: list[str] | None) -> list[str]:
    """Return the command that starts the daemon with the flags of this process.

    `-P` keeps the working directory, often a third party's repository, off the daemon's import path. `-I` would also
    hide packages in the user's site folder or on PYTHONPATH, where emceepee itself may be installed.
    """
    given = sys.argv[1:] if arguments is None else arguments
    return [sys.executable, "-P", "-m", "emceepee", *given, "daemon", "--detach"]


def _show_console(welcome: Welcome) -> None:
    if welcome.link_file is None:
        complain(f"the daemon (process {welcome.pid}) was started without a console")
        return
    try:
        link = read_file(Path(welcome.link_file), LONGEST_LINK).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        link = f"a link that will be written to {welcome.link_file}"
    sys.stderr.write(printable(f"emceepee console at {link}\n"))
