"""Write a session as records, and restore it from them."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeVar

from emceepee.sessions import records
from emceepee.sessions.records import RecordKind, SessionProfile, UnreadableRecord
from emceepee.sessions.session import Session
from emceepee.sessions.stored_task import StoredTask
from emceepee.state.events import OutboxMark
from emceepee.state.task import Task
from emceepee.store.store import RecordKey
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
T = TypeVar("T")
WriteOther = Callable[[RecordKind, str], bytes | None]
_OF_CONNECTIONS = (RecordKind.CONNECTION, RecordKind.MESSAGE)


def write_no_other(kind: RecordKind, record_id: str) -> bytes | None:
    """Write nothing, because only sessions have records."""


def write_record(session: Session, key: RecordKey, write_other: WriteOther) -> bytes | None:
    """Return the current record, or None if it no longer exists. `write_other` writes records outside the session."""
    record_id = key.record_id
    match RecordKind(key.kind):
        case RecordKind.SESSION:
            return records.write_profile(session.profile)
        case RecordKind.EVENT:
            return _written(records.write_event, session.activity.event(int(record_id)))
        case RecordKind.DELIVERY:
            return records.write_delivery(session.activity.delivery_mark)
        case RecordKind.CALL:
            return _written(records.write_task, session.calls.recorded(record_id))
        case RecordKind.TASK:
            return _written(records.write_task, session.tasks.find(record_id))
        case RecordKind.BACKEND_TASK:
            return _sealed_task(session, record_id)
        case RecordKind.SCRIPT:
            return _sealed_script(session, record_id)
        case RecordKind.TIMER:
            return _written(records.write_timer, session.timers.find(record_id))
        case RecordKind.RESULT:
            kept = session.stored_result(record_id)
            return records.write_result(kept) if kept is not None and kept.is_stored else None
        case RecordKind.QUESTION:
            return _written(records.write_question, session.questions.find(record_id))
        case RecordKind.SERVER:
            return _written(records.write_server, session.servers.record(record_id))
        case RecordKind.CONNECTION | RecordKind.MESSAGE as kind:
            return write_other(kind, record_id)


def _written(write: Callable[[T], bytes], value: T | None) -> bytes | None:
    return None if value is None else write(value)


def _sealed_task(session: Session, call_id: str) -> bytes | None:
    call, sealer = session.calls.find_stored(call_id), session.sealing.sealer
    kept = None if call is None else StoredTask.of(call)
    if kept is None or sealer is None:
        return None
    return sealer.seal(kept.to_bytes(), place=_place(session, RecordKind.BACKEND_TASK, call_id))


def _sealed_script(session: Session, call_id: str) -> bytes | None:
    call, sealer = session.calls.find_stored(call_id), session.sealing.sealer
    record = None if call is None or session.scripts is None else session.scripts.record(call)
    if record is None or sealer is None:
        return None
    return sealer.seal(record, place=_place(session, RecordKind.SCRIPT, call_id))


def _place(session: Session, kind: RecordKind, call_id: str) -> tuple[str, ...]:
    # Bind the principal: an attacker with write access to the store could map another principal's key to this session.
    return (kind, session.principal, session.session_id, call_id)


def stored_profile(stored: Mapping[RecordKey, bytes]) -> SessionProfile | None:
    """Return what is known of the caller, or None if it cannot be read."""
    of_session = {key.record_id: data for key, data in stored.items() if key.kind == RecordKind.SESSION}
    return next(iter(_read_all(records.read_profile, of_session).values()), None)


def restore(session: Session, stored: Mapping[RecordKey, bytes]) -> dict[RecordKey, bytes]:
    """Restore the stored state of a session that was just opened. Return the records that its connections read.

    Work that cannot have outlived its process ends here, each with its event: questions first, then tasks. Then overdue
    timers fire.
    """
    by_kind: dict[str, dict[str, bytes]] = {kind: {} for kind in RecordKind}
    for key, data in stored.items():
        by_kind.setdefault(key.kind, {})[key.record_id] = data
    _restore_events(session, by_kind)
    for name, server in _read_all(records.read_server, by_kind[RecordKind.SERVER]).items():
        if session.has_server(name):
            session.connection(name).settings.take_over(server.log_level, server.subscriptions)
    session.timers.restore(_read_all(records.read_timer, by_kind[RecordKind.TIMER]).values())
    _continue_ids(session, by_kind)
    session.questions.expire_restored(_read_all(records.read_question, by_kind[RecordKind.QUESTION]).values())
    kept = _kept_tasks(session, by_kind[RecordKind.BACKEND_TASK])
    scripts = _opened(session, RecordKind.SCRIPT, by_kind[RecordKind.SCRIPT])

    def resume(task: Task) -> "asyncio.Future[None] | None":
        if task.task_id in scripts:
            return session.resume_script(task, scripts[task.task_id])
        found = kept.get(task.task_id)
        return None if found is None else session.resume_call(task, found)

    session.tasks.restore(_read_all(records.read_task, by_kind[RecordKind.TASK]).values(), resume)
    session.tasks.restore_calls(_read_all(records.read_task, by_kind[RecordKind.CALL]).values(), resume)
    if by_kind[RecordKind.RESULT]:
        session.results.restore(list(_read_all(records.read_result, by_kind[RecordKind.RESULT]).values()))
    session.apply_deadlines()
    return {key: data for key, data in stored.items() if key.kind in _OF_CONNECTIONS}


def _kept_tasks(session: Session, stored: Mapping[str, bytes]) -> dict[str, StoredTask]:
    """Return the tasks that can be resumed. The next commit deletes the others."""
    return _read_all(StoredTask.from_bytes, _opened(session, RecordKind.BACKEND_TASK, stored))


def _opened(session: Session, kind: RecordKind, stored: Mapping[str, bytes]) -> dict[str, bytes]:
    """Decrypt the sealed records of this session. The next commit deletes records that are not resumed."""
    sealer = session.sealing.sealer
    opened: dict[str, bytes] = {}
    for call_id in stored:
        session.unsaved.mark(kind, call_id)
        try:
            if sealer is not None:
                opened[call_id] = sealer.open(stored[call_id], place=_place(session, kind, call_id))
        except ValueError as error:
            log.warning("record_unreadable", id=call_id, error=type(error).__name__)
    return opened


def _restore_events(session: Session, by_kind: Mapping[str, Mapping[str, bytes]]) -> None:
    events = {int(number): event for number, event in _read_all(records.read_event, by_kind[RecordKind.EVENT]).items()}
    marks = _read_all(records.read_delivery, by_kind[RecordKind.DELIVERY])
    session.activity.restore(events, next(iter(marks.values()), OutboxMark(min(events, default=0), (), 0)))


def _continue_ids(session: Session, by_kind: Mapping[str, Mapping[str, bytes]]) -> None:
    """Continue after the last id of the session: ids never decrease, even if the clock was set back."""
    known: list[str] = [session.activity.last_event_id or ""]
    for kind in (RecordKind.CALL, RecordKind.TASK, RecordKind.TIMER, RecordKind.QUESTION, RecordKind.RESULT):
        known += by_kind[kind]
    if last := max(known):
        session.ids.continue_after(last)


def _read_all(read: Callable[[bytes], T], stored: Mapping[str, bytes]) -> dict[str, T]:
    """Return records by id, in id order. Skip unreadable records and log them."""
    found: dict[str, T] = {}
    for record_id in sorted(stored):
        try:
            found[record_id] = read(stored[record_id])
        except (UnreadableRecord, KeyError, ValueError, TypeError) as error:
            log.warning("record_unreadable", id=record_id, error=f"{type(error).__name__}: {error}")
    return found
