"""Code mode: runs the scripts of all sessions."""

from typing import Any

from emceepee.backends.spec import RESERVED_NAME
from emceepee.codemode.bindings import THIS_TOOL
from emceepee.codemode.kept_script import KeptScript
from emceepee.codemode.private_scripts import gives_answers
from emceepee.codemode.script import Script, ScriptParts
from emceepee.codemode.script_workers import ScriptWorkers, sandbox_version
from emceepee.codemode.tool_access import ToolAccess
from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments
from emceepee.sessions.call import Call, OnProgress, time_to_live
from emceepee.sessions.records import RecordKind, UnreadableRecord
from emceepee.sessions.session import Session
from emceepee.state.limits import Limits
from emceepee.state.task import Task
from emceepee.telemetry import spans
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.redaction import MASK

log = EventLog("codemode")
METHOD = "codemode/execute"
SCRIPT_CODE_BYTES = 64 << 10
SCRIPTS_PER_SESSION, SCRIPTS_PER_PRINCIPAL, SCRIPTS_IN_ALL = 10, 100, 200  # running or waiting


class CodeMode:
    """Code mode of one installation. It loads the sandbox and starts processes only when the first script runs."""

    def __init__(self, limits: Limits, tools: ToolAccess) -> None:
        self._limits = limits
        self._parts = ScriptParts(workers=ScriptWorkers(limits), tools=tools)

    async def close(self) -> None:
        await self._parts.workers.close()

    def prepare(
        self, session: Session, code: str, *, patience: float, caller: Any, on_progress: OnProgress | None
    ) -> Call:
        """Return a call that will run the script. Raises: EmceepeeError."""
        size = len(code.encode("utf-8", "replace"))
        if size > SCRIPT_CODE_BYTES:
            raise InvalidArguments(f"code: it takes {size} bytes; a script has at most {SCRIPT_CODE_BYTES}.")
        self._check_room(session)
        is_private = gives_answers(code)
        return Call(
            connection=Script(self._parts, session, code, caller=caller),
            method=METHOD,
            params={},
            tool=THIS_TOOL,
            arguments={"code": MASK if is_private else code},
            ttl=time_to_live(self._limits, self._limits.longest_task_ttl_seconds),
            on_progress=on_progress,
            span=spans.current(),
            patience=patience,
            # a private script has no record, so no other process can continue it
            stored_as=RecordKind.BACKEND_TASK if is_private else RecordKind.SCRIPT,
        )

    async def store(self, call: Call) -> None:
        """Make a promoted script durable before the reply that names its task leaves."""
        if isinstance(call.connection, Script):
            await call.connection.store()

    def _check_room(self, session: Session) -> None:
        here = sum(call.method == METHOD for call in session.calls.in_flight(RESERVED_NAME))
        if here >= SCRIPTS_PER_SESSION:
            raise EmceepeeError(
                f"{here} scripts run or wait in this session already, which is the limit. Wait for one with "
                "get_task_result, or end one with cancel_task.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
        if len(self._parts.of(session.principal)) >= SCRIPTS_PER_PRINCIPAL:
            raise EmceepeeError(
                "As many scripts of yours run or wait, in all sessions, as one principal may have. Wait for one of "
                "them with get_task_result, or end one with cancel_task.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )
        if len(self._parts.running) >= SCRIPTS_IN_ALL:
            raise EmceepeeError(
                "As many scripts as this emceepee runs at once are at work. Try again in a while.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )

    # Records

    def record(self, call: Call) -> bytes | None:
        return call.connection.record() if isinstance(call.connection, Script) else None

    def restore(self, session: Any, task: Task, record: bytes) -> Script:
        """Restore a script from its record. An unreadable script also runs: it fails at once with the reason."""
        code = str(task.arguments.get("code", ""))
        try:
            kept = KeptScript.from_bytes(record)
            found, ours = kept.version, sandbox_version()
            if found != ours:
                raise UnreadableRecord(f"it was parked by version {found} of the sandbox, and this is {ours}")
            return Script(self._parts, session, code, kept=kept)
        except (UnreadableRecord, KeyError, ValueError, TypeError, ImportError) as error:
            log.warning("script_unreadable", taskId=task.task_id, error=f"{type(error).__name__}: {error}")
            words = f"The script waited when emceepee was restarted, and cannot go on: {error}. Its calls may have run."
            return Script(self._parts, session, code, broken=words)
