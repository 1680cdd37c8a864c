"""`emceepee import`: copy servers from other clients into emceepee's own configuration."""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence

from emceepee.cli.client_changes import (
    Facts,
    current_time,
    decide,
    open_journal,
    run_guarded,
    say_json,
    show_diffs,
)
from emceepee.cli.terminal import DONE, Paint, agrees, can_ask, complain, say
from emceepee.clients.changes import FileChange
from emceepee.clients.client_file import ClientFile
from emceepee.clients.entry_reader import servers_of
from emceepee.clients.file_locations import file_named, present_files, servers_of_projects
from emceepee.clients.import_plan import ImportOutcome, PlannedServer, plan_import
from emceepee.clients.known_clients import CLIENTS, client_called
from emceepee.clients.own_config import OwnConfig
from emceepee.config.document_errors import ClientError
from emceepee.config.secret_references import References

_SIGNS = {
    ImportOutcome.NEW: "+",
    ImportOutcome.RENAMED: "+",
    ImportOutcome.DUPLICATE: "=",
    ImportOutcome.OWN: "=",
    ImportOutcome.UNSUPPORTED: "!",
}


def run_import(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    own = OwnConfig.find(options.config, os.environ)
    files = _files(options, own)
    journal = open_journal()
    # The user has not yet agreed to use these servers, so open no file that they refer to.
    references = References(environment=os.environ, folder=own.path.parent, opens_files=False)
    plans: list[tuple[ClientFile, PlannedServer]] = []
    known = own.servers()
    for file in files:
        for plan in plan_import(servers_of(file, references), known, journal.own_urls()):
            plans.append((file, plan))
            if plan.is_written and plan.found.entry is not None:
                known[plan.name] = plan.found.entry
    planned = [plan for _, plan in plans]
    hints = _hints(files)
    if not options.json:
        _show(files, plans, own, hints)
    takes = options.take or _offers_taking(options, planned)
    changes = _changes(own, files, plans, takes=takes)
    if not options.json and any(change.is_change for change in changes):
        show_diffs(changes)
    code = decide(options, changes, f"Write {_count(planned)} to {own.path}?")
    is_written = False
    if code is None:
        journal.carry_out("import", changes, now=current_time())
        is_written, code = True, DONE
    if options.json:
        say_json(_facts(own, plans, hints, is_written=is_written, takes=takes))
    elif is_written:
        say(f"Done. `emceepee undo` reverts it; `emceepee doctor --config {own.path}` tests the servers.")
    elif not any(change.is_change for change in changes):
        say("There is nothing to write.")
    return code


def _files(options: argparse.Namespace, own: OwnConfig) -> list[ClientFile]:
    clients = [client_called(name) for name in options.clients]
    if options.source is not None:
        if len(clients) > 1:
            raise ClientError("--from reads one file: specify at most one client with it")
        return [file_named(options.source.expanduser().absolute(), clients[0] if clients else None)]
    files = []
    for client in clients or CLIENTS:
        try:
            found = present_files([client], os.environ, sys.platform)
            for file in found:
                file.entries()
            files += found
        except ClientError as error:
            if clients:
                raise
            complain(f"{client.title} is skipped: {error}")  # one broken file must not hide the others
    files = [file for file in files if file.path.resolve() != own.path.resolve()]
    if not files and clients:
        places = [str(path) for client in clients for path in client.user_files(os.environ, sys.platform)[:1]]
        raise ClientError(
            f"there is no file of {clients[0].title} (looked for {', '.join(places)}); specify one with --from"
        )
    return files


def _hints(files: Sequence[ClientFile]) -> list[str]:
    found = {file.path: servers_of_projects(file) for file in files}
    return [
        f"{path} has {count} more for single folders (projects.*.mcpServers), which are not imported"
        for path, count in found.items()
        if count
    ]


def _offers_taking(options: argparse.Namespace, planned: Sequence[PlannedServer]) -> bool:
    if options.yes or options.json or options.dry_run or not can_ask() or not any(plan.is_behind for plan in planned):
        return False
    return agrees(
        "Also remove them from the clients' own files? Otherwise they start twice once emceepee is installed."
    )


def _changes(
    own: OwnConfig, files: Sequence[ClientFile], plans: Sequence[tuple[ClientFile, PlannedServer]], *, takes: bool
) -> list[FileChange]:
    written = [(plan.name, plan.found.entry) for _, plan in plans if plan.is_written and plan.found.entry is not None]
    after = own.with_servers(written) if written else own.content
    changes = [own.changed(after)]
    for file in files if takes else ():
        names = [plan.found.name for source, plan in plans if source is file and plan.is_behind]
        if names:
            changes.append(file.changed(file.without(names)))
    return changes


def _show(
    files: Sequence[ClientFile],
    plans: Sequence[tuple[ClientFile, PlannedServer]],
    own: OwnConfig,
    hints: Sequence[str],
) -> None:
    paint = Paint.of(sys.stdout)
    if not files:
        say("No configuration of another client was found. Specify a file with --from.")
    for file in files:
        say(paint.bold(file.client.title), " ", paint.faint(str(file.path)))
        rows = [plan for source, plan in plans if source is file]
        if not rows:
            say("  no servers")
        for plan in rows:
            sign = _SIGNS[plan.outcome]
            color = paint.good if sign == "+" else paint.bad if sign == "!" else paint.faint
            words = f": {plan.words}" if plan.words else ""
            say("  ", color(sign), f" {plan.found.name}{words}")
            for note in plan.notes:
                say(paint.faint(f"      {note}"))
    for hint in hints:
        say(f"Note: {hint}")
    if files:
        counts = Counter(plan.outcome for _, plan in plans)
        say(f"{counts[ImportOutcome.NEW] + counts[ImportOutcome.RENAMED]} to import into {own.path}")


def _count(planned: Sequence[PlannedServer]) -> str:
    count = sum(plan.is_written for plan in planned)
    return f"{count} server{'' if count == 1 else 's'}"


def _facts(
    own: OwnConfig,
    plans: Sequence[tuple[ClientFile, PlannedServer]],
    hints: Sequence[str],
    *,
    is_written: bool,
    takes: bool,
) -> Facts:
    return {
        "config": str(own.path),
        "written": is_written,
        "servers": [
            {
                "client": file.client.key,
                "file": str(file.path),
                "name": plan.found.name,
                "importedAs": plan.name if plan.is_written else None,
                "outcome": str(plan.outcome),
                "message": plan.words or None,
                "notes": list(plan.notes),
                "taken": takes and plan.is_behind,
            }
            for file, plan in plans
        ],
        "hints": list(hints),
    }
