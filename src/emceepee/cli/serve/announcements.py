"""Messages to the operator: the address of the server, and the link to the console."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from emceepee import __version__
from emceepee.config.settings import Config
from emceepee.telemetry import logs

log = logs.EventLog("cli")


def announce(address: str) -> None:
    logs.tell_operator(f"emceepee {__version__} serves MCP at {address}/mcp (Ctrl-C to stop)")


def inviting(config: Config) -> Callable[[str], None]:
    """Return a function that shows the console's link.

    A log file is persistent, so it gets the address without the code.
    """
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


@contextmanager
def link_file_removed(config: Config) -> Iterator[None]:
    """Delete the file with the console's link on exit, when the console is closed."""
    try:
        yield
    finally:
        if config.link_file is not None:
            config.link_file.unlink(missing_ok=True)


def _write_private(path: Path, text: str) -> None:
    """Replace the file atomically: the existing one may be a link or belong to another user. Raises: OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # created with mode 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except OSError:
        os.unlink(name)
        raise
