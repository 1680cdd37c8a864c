"""`emceepee undo`: restore what `import`, `install`, `servers`, or `doctor --fix` changed.

It restores a file byte for byte, or entry by entry if the file was edited later.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from emceepee.cli.client_changes import open_journal, run_guarded, say_json, show_diffs
from emceepee.cli.terminal import DONE, FAILED, USAGE, agrees, can_ask, complain, say
from emceepee.clients.change_journal import ChangeJournal, JournalEntry, Restoration
from emceepee.config.document_errors import ClientError
from emceepee.wire.json_types import JsonObject

NOTHING: Mapping[int, list[Restoration]] = MappingProxyType({})


def run_undo(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    journal = open_journal()
    changes = journal.changes()
    if options.list:
        return _list(changes, options)
    chosen = _chosen(changes, options)
    if not chosen:
        if options.json:
            say_json({"undone": []})
        else:
            say("There is nothing to undo.")
        return DONE
    restored = {} if options.forget else _restorations(journal, chosen)
    if not options.json:
        _show(chosen, restored)
    if not options.yes and (options.json or not can_ask()):
        complain("nothing was changed: pass --yes to undo without confirmation")
        return USAGE
    if not options.yes and not agrees("Forget this?" if options.forget else "Put these files back?"):
        say("Nothing was changed.")
        return FAILED
    return _carry_out(journal, chosen, restored, options)


def _restorations(journal: ChangeJournal, chosen: list[JournalEntry]) -> dict[int, list[Restoration]]:
    """Return the effects on files by change number, up to the first change that cannot be undone."""
    found: dict[int, list[Restoration]] = {}
    contents: dict[Path, bytes | None] = {}
    for change in chosen:
        try:
            found[change.number] = journal.restorations(change, contents)
        except ClientError:
            break  # undo itself reports the error
        contents |= {each.change.path: each.change.after for each in found[change.number]}
    return found


def _carry_out(
    journal: ChangeJournal,
    chosen: list[JournalEntry],
    restored: dict[int, list[Restoration]],
    options: argparse.Namespace,
) -> int:
    done: list[JsonObject] = []
    problem: ClientError | None = None
    for change in chosen:
        try:
            if options.forget:
                journal.forget(change)
            else:
                journal.undo(change)
        except ClientError as error:
            problem = error
            break
        parts = [str(each.change.path) for each in restored.get(change.number, ()) if each.is_by_entry]
        done.append(_facts(change) | ({"byEntry": parts} if parts else {}))
    if options.json:
        say_json({"undone": done, "problem": None if problem is None else str(problem)})
    elif done:
        if any("byEntry" in facts for facts in done):
            say("Other content of files that were edited later is unchanged.")
        say(f"{'Forgotten' if options.forget else 'Undone'}: {len(done)}.")
    if problem is not None:
        complain(problem)
        return FAILED
    return DONE


def _chosen(changes: list[JournalEntry], options: argparse.Namespace) -> list[JournalEntry]:
    """Return the chosen changes, the latest first, because each one builds on the changes before it."""
    if options.all:
        return changes
    if options.number is None:
        return changes[:1]
    if options.number not in [change.number for change in changes]:
        raise ClientError(f"no change has the number {options.number}; emceepee undo --list shows all changes")
    if options.forget:
        return [change for change in changes if change.number == options.number]
    return [change for change in changes if change.number >= options.number]


def _list(changes: list[JournalEntry], options: argparse.Namespace) -> int:
    if options.json:
        say_json({"changes": [_facts(change) for change in changes]})
    elif changes:
        _show(changes)
    else:
        say("There is nothing to undo.")
    return DONE


def _show(changes: list[JournalEntry], restored: Mapping[int, list[Restoration]] = NOTHING) -> None:
    for change in changes:
        say(f"{change.number:>4}  {change.at[:16].replace('T', ' ')}  {change.command}")
        for path in change.paths:
            say(f"      {path}")
        for each in restored.get(change.number, ()):
            if each.is_by_entry:
                say(f"{each.change.path} was edited later. Only emceepee's own changes are reverted:")
                show_diffs([each.change])


def _facts(change: JournalEntry) -> JsonObject:
    return {"number": change.number, "at": change.at, "command": change.command, "files": change.paths}
