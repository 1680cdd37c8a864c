"""`emceepee undo`: put back, byte for byte, what `import`, `install`, `servers` or `doctor --fix` changed."""

import argparse

from emceepee.cli.client_changes import open_journal, run_guarded, say_json
from emceepee.cli.terminal import DONE, FAILED, USAGE, agrees, can_ask, complain, say
from emceepee.clients.faults import ClientError
from emceepee.clients.journal import Change, Journal
from emceepee.json_types import JsonObject


def run_undo(options: argparse.Namespace) -> int:
    """Returns the exit code."""
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
    if not options.json:
        _show(chosen)
    if not options.yes and (options.json or not can_ask()):
        complain("nothing was changed: say --yes to do it without being asked")
        return USAGE
    if not options.yes and not agrees("Forget this?" if options.forget else "Put these files back?"):
        say("Nothing was changed.")
        return FAILED
    return _carry_out(journal, chosen, options)


def _carry_out(journal: Journal, chosen: list[Change], options: argparse.Namespace) -> int:
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
        done.append(_facts(change))
    if options.json:
        say_json({"undone": done, "problem": None if problem is None else str(problem)})
    elif done:
        say(f"{'Forgotten' if options.forget else 'Undone'}: {len(done)}.")
    if problem is not None:
        complain(problem)
        return FAILED
    return DONE


def _chosen(changes: list[Change], options: argparse.Namespace) -> list[Change]:
    """The latest first, as each was made on what those before it left."""
    if options.all:
        return changes
    if options.number is None:
        return changes[:1]
    if options.number not in [change.number for change in changes]:
        raise ClientError(f"there is no change {options.number}; emceepee undo --list shows those there are")
    if options.forget:
        return [change for change in changes if change.number == options.number]
    return [change for change in changes if change.number >= options.number]


def _list(changes: list[Change], options: argparse.Namespace) -> int:
    if options.json:
        say_json({"changes": [_facts(change) for change in changes]})
    elif changes:
        _show(changes)
    else:
        say("There is nothing to undo.")
    return DONE


def _show(changes: list[Change]) -> None:
    for change in changes:
        say(f"{change.number:>4}  {change.at[:16].replace('T', ' ')}  {change.command}")
        for path in change.paths:
            say(f"      {path}")


def _facts(change: Change) -> JsonObject:
    return {"number": change.number, "at": change.at, "command": change.command, "files": change.paths}
