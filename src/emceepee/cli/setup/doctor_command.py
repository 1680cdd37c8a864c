"""`emceepee doctor`: test every configured server, and report problems with their remedies."""

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from emceepee.cli.client_changes import Facts, current_time, open_journal, run_guarded, say_json
from emceepee.cli.terminal import DONE, FAILED, Paint, agrees, can_ask, complain, say
from emceepee.clients.own_config import OwnConfig
from emceepee.clients.sharing_rules import SHARED, SHARING, why_shareable
from emceepee.config.document_errors import ClientError
from emceepee.config.secret_references import References, literal_secrets
from emceepee.paths import PRIVATE_FILE
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from emceepee.backends.spec import BackendSpec
    from emceepee.cli.setup.diagnosis import Finding
    from emceepee.cli.setup.server_check import ServerCheck
    from emceepee.config.settings import ConfigProblem

FOR_OTHERS = 0o077
ONLY_OWNER = "only you can read"
_SHARE = 'if it stores no state per client, set "sharing": "shared" (doctor --fix --yes does it)'


@dataclass(slots=True, kw_only=True)
class Row:
    """A server and its test. `check` is None if the server is disabled or could not be tested."""

    name: str
    is_disabled: bool = False
    findings: tuple["Finding", ...] = ()
    check: "ServerCheck | None" = None
    shareable: str | None = None  # the reason why all sessions could share one process
    fixed: str | None = None

    @property
    def is_bad(self) -> bool:
        from emceepee.cli.setup.diagnosis import FindingCode

        waits = any(finding.code is FindingCode.WANTS_LOGIN for finding in self.findings)
        return bool(self.findings) and not (self.check is not None and (self.check.is_usable or waits))


def run_doctor(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    own = OwnConfig.find(options.config, os.environ)
    if own.content is None:
        raise ClientError(
            f"there is no configuration at {own.path}; create one with emceepee import, or specify one with --config"
        )
    entries = own.servers()
    for name in options.servers:
        if name not in entries:
            raise ClientError(f'no server is called "{name}"; there are {", ".join(entries) or "none"}')
    chosen = {name: entry for name, entry in entries.items() if not options.servers or name in options.servers}
    check = check_entries(own, chosen, options)
    rows = check.rows
    for row in rows:
        if row.check is not None and row.check.is_usable:
            row.shareable = why_shareable(chosen[row.name], row.check.seen)
    general = [*check.general, *_of_the_file(own, entries)]
    fixed = _fix(own, rows, general, shares=_may_share(options, rows)) if options.fix else []
    bad = sum(row.is_bad and row.fixed is None for row in rows)
    is_right = not bad and not check.general
    if options.json:
        say_json(_facts(own, rows, general, fixed))
    else:
        _show(own, rows, general, fixed, bad)
    return DONE if is_right else FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedEntries:
    """The servers' test results, and problems in settings that belong to no server."""

    rows: list[Row]
    general: list["Finding"]


def check_entries(own: OwnConfig, chosen: dict[str, JsonObject], options: argparse.Namespace) -> CheckedEntries:
    """Test these servers. Raises: ClientError."""
    from emceepee.backends.spec import UnusableTarget
    from emceepee.cli.egress_options import egress_settings
    from emceepee.config.file_reader import inspect
    from emceepee.config.settings import ConfigError
    from emceepee.telemetry import logs

    references = References(environment=os.environ, folder=own.path.parent)
    text = json.dumps({**own.settings(), "mcpServers": chosen})
    config = inspect(text, source="", references=references)
    rows = {name: Row(name=name, is_disabled=entry.get("disabled") is True) for name, entry in chosen.items()}
    general: list[Finding] = []
    for problem in config.problems:
        if problem.server in rows:
            rows[problem.server].findings += (_finding_of(problem),)
        else:
            general.append(_finding_of(problem))
    logs.configure(level="error")
    try:
        egress = egress_settings(options.ca_bundle, os.environ)
    except ConfigError as error:
        raise ClientError(str(error)) from None
    usable = [spec for spec in config.servers if not isinstance(spec.target, UnusableTarget)]
    for result in asyncio.run(_try_all(usable, egress, options)):
        row = rows[result.spec.name]
        row.check, row.findings = result, result.findings
    return CheckedEntries(rows=list(rows.values()), general=general)


def _finding_of(problem: "ConfigProblem") -> "Finding":
    from emceepee.cli.setup.diagnosis import Finding, FindingCode

    if problem.server is None:
        until = "emceepee cannot start with it" if problem.is_fatal else "until then, emceepee uses the default"
        return Finding(code=FindingCode.BAD_SETTING, message=str(problem), remedy=f"fix that: {until}")
    return Finding(
        code=FindingCode.BAD_REFERENCE if problem.is_reference else FindingCode.BAD_ENTRY,
        message=str(problem).removeprefix(f"mcpServers.{problem.server}").lstrip(".: "),
        remedy='fix it, or set "disabled": true: until then, emceepee runs without this server',
    )


async def _try_all(specs: Sequence["BackendSpec"], egress: object, options: argparse.Namespace) -> "list[ServerCheck]":
    from emceepee.backends.dialer import Dialer
    from emceepee.backends.http1.egress import EgressSettings
    from emceepee.cli.setup.server_check import check_servers
    from emceepee.clock import SystemClock
    from emceepee.state.limits import Limits

    assert isinstance(egress, EgressSettings)
    clock = SystemClock()
    async with Dialer.running(clock, Limits(), egress=egress) as dialer:
        return await check_servers(specs, dialer, clock, patience=options.timeout)


def _of_the_file(own: OwnConfig, entries: dict[str, JsonObject]) -> "list[Finding]":
    from emceepee.cli.setup.diagnosis import Finding, FindingCode

    secrets = [where for name, entry in entries.items() for where in literal_secrets(entry, name)]
    if not secrets or not own.path.stat().st_mode & FOR_OTHERS:
        return []
    return [
        Finding(
            code=FindingCode.OPEN_TO_OTHERS,
            message=f"{own.path} contains secrets ({', '.join(secrets[:5])}), and other users can read it",
            remedy=f"chmod 600 {own.path} (doctor --fix does it)",
        )
    ]


def _may_share(options: argparse.Namespace, rows: Sequence[Row]) -> bool:
    """Return whether the user agrees to share.

    This needs consent, because state that a server keeps per client is not visible from outside.
    """
    names = [row.name for row in rows if row.shareable is not None]
    if options.yes or not names or options.json or not can_ask():
        return bool(options.yes)
    for row in rows:
        if row.shareable is not None:
            say(f"{row.name} could be shared: {row.shareable}")
    return agrees(f"Let all sessions use one process of {', '.join(names)}?")


def _fix(own: OwnConfig, rows: Sequence[Row], general: "Sequence[Finding]", *, shares: bool) -> list[str]:
    """Apply safe fixes, and sharing if the user agreed. Return descriptions of the changes.

    Two fixes are safe: replacing a command by its program's absolute path, and restricting access to the file to its
    owner.
    """
    from emceepee.cli.setup.diagnosis import FindingCode

    done: list[str] = []
    fixed = own
    for row in rows:
        command = next((finding.command for finding in row.findings if finding.command is not None), None)
        if command is not None:
            fixed = replace(fixed, content=fixed.with_setting(row.name, "command", command))
            row.fixed = f"changed its command to {command}"
            done.append(f"{row.name}: {row.fixed}")
        if shares and row.shareable is not None:
            fixed = replace(fixed, content=fixed.with_setting(row.name, SHARING, SHARED))
            row.shareable, row.fixed = None, "all sessions now share it"
            done.append(f"{row.name}: {row.fixed}")
    if done:
        change = own.changed(fixed.content)
        open_journal().carry_out("doctor --fix", [change], now=current_time())
    if any(finding.code is FindingCode.OPEN_TO_OTHERS for finding in general):
        try:
            own.path.chmod(PRIVATE_FILE)
            done.append(f"{ONLY_OWNER} {own.path} now")
        except OSError as error:
            complain(f"{own.path} cannot be made private: {error.strerror}")
    return done


def _show(own: OwnConfig, rows: Sequence[Row], general: "Sequence[Finding]", fixed: Sequence[str], bad: int) -> None:
    paint = Paint.of(sys.stdout)
    say(paint.bold("Servers of"), f" {own.path}")
    for row in rows:
        say(*_line(row, paint))
        for finding in row.findings:
            say(f"      {finding.message}")
            say("      ", paint.bold("→"), f" {finding.remedy}")
        if row.shareable is not None:
            say(paint.faint(f"      could be shared by all sessions: {row.shareable}"))
            say(paint.faint(f"      {_SHARE}"))
        if row.fixed is not None:
            say("      ", paint.good("fixed"), f": {row.fixed}; run doctor again to see whether it works")
    for finding in general:
        say("  ", paint.bad("!"), f" {finding.message}\n      ", paint.bold("→"), f" {finding.remedy}")
    if fixed and fixed[-1].startswith(ONLY_OWNER):
        say("  ", paint.good("fixed"), f": {fixed[-1]}")
    say(f"{len(rows)} looked at, {bad or 'none'} with a problem")


def _line(row: Row, paint: Paint) -> tuple[str, ...]:
    if row.is_disabled and not row.findings:
        return "  ", paint.faint("-"), f" {row.name}: disabled"
    if row.check is not None and row.check.is_usable:
        seen = row.check
        tools = "no tools" if seen.tools is None else f"{seen.tools} tool{'' if seen.tools == 1 else 's'}"
        sign = paint.good("✓") if not row.findings else paint.bad("!")
        return "  ", sign, f" {row.name}: {tools}, {seen.protocol_version}, {seen.seconds:.1f} s"
    code = f" ({row.findings[0].code})" if row.findings else ""
    return "  ", paint.bad("✗") if row.is_bad else paint.bold("?"), f" {row.name}{code}"


def _facts(own: OwnConfig, rows: Sequence[Row], general: "Sequence[Finding]", fixed: Sequence[str]) -> Facts:
    return {
        "config": str(own.path),
        "servers": [{"name": row.name, **row_facts(row), "fixed": row.fixed} for row in rows],
        "findings": [_finding(finding) for finding in general],
        "fixed": list(fixed),
    }


def row_facts(row: Row) -> Facts:
    return {
        "status": _status(row),
        "tools": None if row.check is None else row.check.tools,
        "protocolVersion": (row.check.protocol_version if row.check else "") or None,
        "seconds": None if row.check is None else round(row.check.seconds, 3),
        "findings": [_finding(finding) for finding in row.findings],
        "suggestions": [] if row.shareable is None else [_suggestion(row.shareable)],
    }


def _suggestion(why: str) -> JsonObject:
    return {"code": "could_be_shared", "message": f"{why}. {_SHARE}", "setting": {SHARING: SHARED}}


def _status(row: Row) -> str:
    if row.is_disabled and not row.findings:
        return "disabled"
    if row.is_bad:
        return "problem"
    return "ok" if not row.findings else "warning"


def _finding(finding: "Finding") -> JsonObject:
    return {"code": str(finding.code), "message": finding.message, "remedy": finding.remedy}
