"""Code shared by `import`, `install`, and `undo`: the journal's location, and confirmation before writing."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from emceepee.cli.terminal import DONE, FAILED, USAGE, Paint, agrees, can_ask, complain, say
from emceepee.clients.change_journal import ChangeJournal
from emceepee.clients.changes import FileChange
from emceepee.config.document_errors import ClientError
from emceepee.paths import state_folder
from emceepee.terminal_text import printable_json

Facts = dict[str, Any]


def open_journal() -> ChangeJournal:
    """Raises: ClientError."""
    try:
        return ChangeJournal(state_folder(os.environ))
    except RuntimeError:
        raise ClientError("this user has no home directory; set HOME") from None


def current_time() -> datetime:
    from emceepee.clock import SystemClock  # imported here: it loads asyncio

    return SystemClock().now()


def run_guarded(work: Callable[[], int], *, interrupted: int | None = None) -> int:
    """Run the work and return the exit code; `interrupted` is the code for Ctrl-C in commands that run until then."""
    try:
        code = work()
        sys.stdout.flush()
    except ClientError as error:
        complain(error)
        return FAILED
    except BrokenPipeError:  # the reader closed the pipe early, for example `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        if interrupted is not None:
            return interrupted
        complain("stopped; nothing was changed")
        return FAILED
    return code


def decide(options: argparse.Namespace, changes: Sequence[FileChange], question: str) -> int | None:
    """Return None if the changes may be written, else the exit code."""
    if options.dry_run:
        return DONE
    if not any(change.is_change for change in changes):
        return DONE
    if options.yes:
        return None
    if options.json or not can_ask():
        complain("nothing was written: pass --yes to write without confirmation, or --dry-run to preview")
        return USAGE
    if agrees(question):
        return None
    say("Nothing was written.")
    return FAILED


def show_diffs(changes: Sequence[FileChange]) -> None:
    paint = Paint.of(sys.stdout)
    for change in changes:
        if change.is_change:
            sys.stdout.write(f"\n{paint.diff(change.diff())}")
    say("")


def say_json(facts: Facts) -> None:
    sys.stdout.write(f"{printable_json(facts, indent=2)}\n")
