"""`emceepee state`: inspect state, and maintain a state file."""

import argparse
import os
import re
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from emceepee.cli.terminal import agrees, can_ask, complain, say
from emceepee.terminal_text import printable, printable_json

if TYPE_CHECKING:
    from emceepee.store.redis.connection.redis_address import RedisAddress
    from emceepee.store.sqlite.inspection import StateFile

FINE, PROBLEM, UNUSABLE = 0, 1, 2
STANDARD_OUTPUT = "-"
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(?P<count>[0-9]{1,6})(?P<unit>[smhdw])")
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_AGES = ((86400, "d"), (3600, "h"), (60, "min"), (0, "s"))
Facts = dict[str, Any]


class StateRefused(Exception):
    """The operation was refused; the message describes an alternative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateReport:
    """The result: `facts` for JSON, `text` for people, and `problems` for standard error. All may be empty."""

    facts: Facts
    text: str
    problems: str = ""
    code: int = FINE


def add_state_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", places: Sequence[argparse.ArgumentParser]
) -> None:
    """`places` are parent parsers with the flags that locate the state."""
    words = "Show where state is stored, its size, and the processes that use it."
    state = commands.add_parser("state", help=words, description=words, parents=places)
    state.add_argument("--json", action="store_true", help="say it in JSON")
    nested = argparse.ArgumentParser(add_help=False)
    nested.add_argument("--json", action="store_true", help="say it in JSON", default=argparse.SUPPRESS)
    works = state.add_subparsers(dest="work", metavar="command")

    def add(name: str, words: str) -> argparse.ArgumentParser:
        return works.add_parser(name, help=words, description=words, parents=[*places, nested])

    add("check", "Check for damage; the exit code is 1 if any is found.")
    add("compact", "Reclaim the disk space of deleted records.")
    forget = add("forget", "Delete sessions that no running emceepee holds.")
    what = forget.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "sessions", nargs="*", default=[], metavar="SESSION", help="ids of sessions, as export shows them"
    )
    what.add_argument(
        "--older-than", type=duration, metavar="AGE", help="sessions unchanged for this long: 30m, 12h, 7d"
    )
    seal = add("seal", "Encrypt servers that are stored unencrypted in Redis, after confirmation.")
    seal.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    export = add("export", "Export everything except secrets as JSON.")
    export.add_argument("file", metavar="FILE", help="a file readable only by its owner; - is standard output")


def duration(text: str) -> timedelta:
    """Parse a duration such as 30m, 12h, or 7d."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a number and s, m, h, d or w, such as 12h, found {text!r}")
    return timedelta(**{UNITS[found["unit"]]: int(found["count"])})


def run_state(options: argparse.Namespace, environment: Mapping[str, str] = os.environ) -> int:
    """Run the command and return the exit code."""
    from emceepee.config.file_reader import NO_SERVER, load
    from emceepee.config.settings import ConfigError, locate_state  # imported here: --help must not wait for it
    from emceepee.store.location import SQLITE
    from emceepee.store.store import StoreError

    try:
        location = locate_state(load(options.config, only=NO_SERVER), options.state, environment, usual=SQLITE)
        if location.redis is not None:
            if options.work == "seal":
                report = _seal(location.redis, location.key, asks=not options.yes)
            else:
                report = _in_redis(options.work, location.redis, has_key=location.key is not None)
        elif location.path is None:
            report = _in_memory(options.work)
        else:
            report = _WORKS[options.work](location.path, options)
        is_json = options.json and report.facts
        sys.stdout.write(f"{printable_json(report.facts)}\n" if is_json else printable(report.text))
        sys.stdout.flush()
    except (ConfigError, StoreError, StateRefused) as error:
        complain(error)
        return UNUSABLE
    except BrokenPipeError:  # the reader closed the pipe early, for example `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    sys.stderr.write(printable(report.problems))
    return report.code


def _in_memory(work: str | None) -> StateReport:
    if work is not None:
        raise StateRefused(
            "state is stored in memory, which only the process itself can access; specify a file with --state"
        )
    text = "State is stored in memory and ends with the process.\n"
    return StateReport(facts={"path": None, "exists": False}, text=text)


def _in_redis(work: str | None, redis: "RedisAddress", *, has_key: bool) -> StateReport:
    if work is not None:
        raise StateRefused(f"{work} is for state files; state is stored in Redis at {redis}, which has its own tools")
    from emceepee.clock import SystemClock
    from emceepee.store.redis.redis_overview import look_at_redis

    seen = look_at_redis(redis, SystemClock())
    facts: Facts = {
        "path": None,
        "exists": True,
        "redis": seen.place,
        "sessions": seen.sessions,
        "servers": seen.servers,
        "plainServers": seen.plain_servers,
        "logins": seen.logins,
        "replicas": [{"slot": each.slot, "address": each.address} for each in seen.replicas],
        "processes": len(seen.replicas),
    }
    rows = {
        "Redis": seen.place,
        "Sessions": f"{seen.sessions}",
        "Servers": f"{seen.servers} added by callers",
        "Logins": f"{seen.logins}",
        "Replicas": f"{len(seen.replicas)}",
    }
    replicas = {f"  slot {each.slot}": each.address or "not reachable by other replicas" for each in seen.replicas}
    problems = ""
    if seen.plain_servers and has_key:
        problems = (
            f"emceepee: {_count(seen.plain_servers, 'server')} in Redis not encrypted, and therefore rejected; run "
            f"emceepee state seal to review and accept, or add them again\n"
        )
    return StateReport(facts=facts, text=_table(rows | replicas), problems=problems)


def _seal(redis: "RedisAddress", key: str | None, *, asks: bool) -> StateReport:
    """Encrypt plain servers in Redis. With `asks`, ask for confirmation first."""
    from emceepee.clock import SystemClock
    from emceepee.store.redis.plain_servers import PlainServer, seal_servers

    if asks and not can_ask():
        raise StateRefused("seal needs confirmation; run it in a terminal, or pass --yes")

    def agree(found: "Sequence[PlainServer]") -> bool:
        if not asks:
            return True
        for each in found:
            say(f"{each.principal} {each.name}: {each.settings.decode(errors='replace')}")
        return agrees(f"Encrypt {'this server' if len(found) == 1 else f'these {len(found)} servers'}, and accept?")

    sealed = seal_servers(redis, SystemClock(), key, agree)
    return StateReport(facts={"sealed": sealed}, text=f"Encrypted: {sealed}\n")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun} is" if number == 1 else f"{number} {noun}s are"


def _seal_file(path: Path, options: argparse.Namespace) -> StateReport:
    return StateReport(facts={"sealed": 0}, text=f"{path}: a state file encrypts every server. Nothing to do.\n")


@contextmanager
def _opened(path: Path) -> Iterator["StateFile"]:
    from emceepee.clock import SystemClock
    from emceepee.store.sqlite.inspection import StateFile

    with StateFile.open(path, SystemClock()) as file:
        yield file


def _show(path: Path, options: argparse.Namespace) -> StateReport:
    if not path.exists():
        text = f"There is no state at {path} yet. emceepee serve creates it, as does emceepee --state sqlite.\n"
        return StateReport(facts={"path": str(path), "exists": False}, text=text)
    from emceepee.clock import SystemClock
    from emceepee.store.sqlite.owners import Owners

    processes = len(Owners(path).alive()) - 1  # the inspecting process is included
    with _opened(path) as file:
        seen = file.statistics()
    now = SystemClock().now()
    facts: Facts = {
        "path": str(path),
        "exists": True,
        "sizeBytes": seen.size_bytes,
        "sessions": seen.sessions,
        "heldSessions": seen.held_sessions,
        "records": dict(seen.records),
        "servers": seen.servers,
        "logins": seen.logins,
        "oldestChange": _iso(seen.oldest),
        "newestChange": _iso(seen.newest),
        "secondsSinceChange": None if seen.newest is None else max(0.0, (now - seen.newest).total_seconds()),
        "processes": processes,
    }
    held = f", {seen.held_sessions} of them held by a running emceepee" if seen.held_sessions else ""
    rows = {
        "State file": str(path),
        "Size": _size(seen.size_bytes),
        "Sessions": f"{seen.sessions}{held}",
        "Servers": f"{seen.servers} added by callers",
        "Logins": f"{seen.logins}",
        "Oldest session": _changed(seen.oldest, now),
        "Newest session": _changed(seen.newest, now),
        "In use": f"by {processes} process{'es' if processes > 1 else ''}" if processes else "no",
    }
    return StateReport(facts=facts, text=_table(rows))


def _check(path: Path, options: argparse.Namespace) -> StateReport:
    with _opened(path) as file:
        found = list(file.check())
    facts: Facts = {"path": str(path), "problems": found}
    if not found:
        return StateReport(facts=facts, text=f"{path}: nothing is wrong.\n")
    way_out = "Restore a backup, or move the file away to start with a new one."
    problems = f"emceepee: the state file {path} is damaged. {way_out}\n"
    text = "".join(f"{path}: {words}\n" for words in found)
    return StateReport(facts=facts, text=text, problems=problems, code=PROBLEM)


def _compact(path: Path, options: argparse.Namespace) -> StateReport:
    with _opened(path) as file:
        before, after = file.compact()
    facts: Facts = {"path": str(path), "bytesBefore": before, "bytesAfter": after}
    return StateReport(facts=facts, text=f"{path}: {_size(before)} before, {_size(after)} now.\n")


def _forget(path: Path, options: argparse.Namespace) -> StateReport:
    from emceepee.clock import SystemClock

    with _opened(path) as file:
        if options.older_than is not None:
            found = file.forget_older_than(SystemClock().now() - options.older_than)
        else:
            found = file.forget(options.sessions)
    facts: Facts = {
        "path": str(path),
        "forgotten": list(found.forgotten),
        "held": list(found.held),
        "unknown": list(found.unknown),
    }
    problems = "".join(f"emceepee: there is no session {name}; export shows all sessions\n" for name in found.unknown)
    if found.held:
        problems += f"emceepee: a running emceepee holds {len(found.held)} of them; stop it first\n"
    asked_for = options.older_than is None  # with --older-than, sessions in use are not an error
    code = UNUSABLE if found.unknown or (asked_for and found.held) else FINE
    return StateReport(facts=facts, text=f"Forgotten: {len(found.forgotten)}\n", problems=problems, code=code)


def _export(path: Path, options: argparse.Namespace) -> StateReport:
    with _opened(path) as file:
        if options.file == STANDARD_OUTPUT:
            file.export(sys.stdout)
            return StateReport(facts={}, text="")
        target = Path(options.file).absolute()
        _refuse_to_replace(target, path)
        try:
            _write_private(target, file.export)
        except OSError as error:
            raise StateRefused(f"{target} cannot be written: {error.strerror}; choose another file") from None
    return StateReport(facts={"path": str(path), "file": str(target)}, text=f"Written to {target}\n")


_WORKS: Mapping[str | None, Callable[[Path, argparse.Namespace], StateReport]] = {
    None: _show,
    "check": _check,
    "compact": _compact,
    "forget": _forget,
    "seal": _seal_file,
    "export": _export,
}


def _refuse_to_replace(target: Path, state: Path) -> None:
    """Refuse a device or pipe, and any file next to the state whose name starts with the state's name."""
    if target.exists() and not stat.S_ISREG(target.stat().st_mode):
        raise StateRefused(f"{target} is not a regular file; specify another, or - for standard output")
    if target.resolve().parent == state.resolve().parent and target.name.startswith(state.name):
        raise StateRefused(f"{target} is part of the state itself; specify another file")


def _write_private(target: Path, write: Callable[[TextIO], None]) -> None:
    """Write the file atomically, readable only by its owner. Raises: OSError."""
    descriptor, draft = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # created with mode 0600
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            write(file)
        os.replace(draft, target)
    except BaseException:
        os.unlink(draft)
        raise


def _table(rows: Mapping[str, str]) -> str:
    return "".join(f"{name + ':':<16}{text}\n" for name, text in rows.items())


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _size(count: int) -> str:
    for size, unit in _SIZES:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"


def _changed(moment: datetime | None, now: datetime) -> str:
    if moment is None:
        return "none"
    seconds = max(0, int((now - moment).total_seconds()))
    least, unit = next((least, unit) for least, unit in _AGES if seconds >= least)
    return f"changed {seconds // max(least, 1)} {unit} ago, {moment:%Y-%m-%d %H:%M:%S} UTC"
