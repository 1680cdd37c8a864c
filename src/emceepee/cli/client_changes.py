"""What `import`, `install` and `undo` share: where the journal is, and asking before anything is written."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from emceepee.cli.terminal import DONE, FAILED, USAGE, Paint, agrees, can_ask, complain, say
from emceepee.clients.changes import FileChange
from emceepee.clients.journal import ChangeJournal
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
    from emceepee.clock import SystemClock  # here: it loads asyncio

    return SystemClock().now()


def run_guarded(work: Callable[[], int], *, interrupted: int | None = None) -> int:
    """Returns the exit code; `interrupted` for work that goes on until Ctrl-C ends it."""
    try:
        code = work()
        sys.stdout.flush()
    except ClientError as error:
        complain(error)
        return FAILED
    except BrokenPipeError:  # whoever read it has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        if interrupted is not None:
            return interrupted
        complain("stopped; nothing was changed")
        return FAILED
    return code


def decide(options: argparse.Namespace, changes: Sequence[FileChange], question: str) -> int | None:
    """None to go on, else the exit code."""
    if options.dry_run:
        return DONE
    if not any(change.is_change for change in changes):
        return DONE
    if options.yes:
        return None
    if options.json or not can_ask():
        complain("nothing was written: say --yes to write without being asked, or --dry-run")
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
