"""Questions in the result of a call, for callers of 2026-07-28 that accept them and repeat the call with the answers.

    call ──▶ session.call ── the server asks ──▶ a task, as for every caller
         ◀── resultType "input_required", inputRequests, requestState
    call with inputResponses and requestState ──▶ pass the answers on, as through a tool, then wait for the task
         ◀── its result, more questions, or, if it takes long, the task

The call runs once: the repeated call only names the task. The state is bound to the session and to the call.
"""

import hmac
import json
from hashlib import blake2b

from emceepee.clock import milliseconds, within
from emceepee.errors import EmceepeeError
from emceepee.sessions.call import Call
from emceepee.sessions.session import Session
from emceepee.state.attendance import Attendance
from emceepee.state.question import Question, QuestionKind
from emceepee.state.task import Task
from emceepee.tools.content import CallResult
from emceepee.tools.declaration.declaration import InputRequired
from emceepee.tools.replies.heartbeat import heartbeat
from emceepee.tools.replies.native_questions import (
    declared_modes,
    mode_of,
    read_attendance,
    request_params,
    take_answer,
)
from emceepee.tools.replies.promotion import describe_promotion
from emceepee.tools.replies.task_outcome import task_outcome
from emceepee.tools.request_context import InputRound, RequestContext
from emceepee.wire.json_rpc import modern_capabilities
from emceepee.wire.json_types import JsonObject

STATE, RESPONSES = "requestState", "inputResponses"
_PURPOSE = b"request state"  # separates this use of the session's secret from other uses


class BadRound(Exception):
    """The repeated call does not answer emceepee's questions. The message names the next step."""


def read_round(params: JsonObject, session: Session) -> InputRound | None:
    """Return the answers in a repeated call, or None for a new call. Raises: BadRound, and then nothing may run."""
    if modern_capabilities(params) is None:
        return None
    state, responses = params.get(STATE), params.get(RESPONSES)
    if state is None and responses is None:
        return None
    if not isinstance(state, str):
        raise BadRound(f"tools/call: {RESPONSES} came without the {STATE} that belongs to them: send both again")
    named, _, seal = state.rpartition(".")
    if not hmac.compare_digest(seal.encode(), _seal(session, named, params).encode()):
        raise BadRound(f"tools/call: the {STATE} belongs to another call or session; leave it out to call again")
    task_id, _, asked_ms = named.partition(".")
    return InputRound(task_id, responses if isinstance(responses, dict) else {}, int(asked_ms) / 1000)


def describe_task(task: Task, session: Session, caller: RequestContext) -> CallResult:
    """Return the reply to a call that has become a task: the questions if the caller accepts them, else the task."""
    if questions := _questions_for(caller, session, task):
        asked = {
            question.request_id: {"method": "elicitation/create", "params": request_params(question)}
            for question in questions
        }
        named = f"{task.task_id}.{milliseconds(session.clock.now())}"
        state = f"{named}.{_seal(session, named, caller.request.params or {})}"
        return InputRequired({"resultType": "input_required", "inputRequests": asked, STATE: state})
    return describe_promotion(task, session)


async def continue_call(
    following: InputRound, session: Session, caller: RequestContext, timeout: float | None, max_bytes: int | None = None
) -> CallResult:
    """Pass the answers on, then wait for the result or further questions. Raises: EmceepeeError."""
    task = session.tasks.get(following.task_id)
    if (problem := _take_answers(following, session, caller, task)) is not None:
        return describe_promotion(task, session, problem)
    if (call := session.calls.find_task(task.task_id)) is not None:
        caller.record_call(session, call)
        limits = session.limits
        if timeout is None:
            timeout = limits.quiet_call_seconds if caller.on_progress is None else limits.call_seconds
        with session.activity.waiting(), heartbeat(caller, session.clock, timeout):
            await _wait(call, session, caller, task, timeout)
        task = session.tasks.get(task.task_id)
    if task.has_ended:
        return await task_outcome(task, session, max_bytes)
    return describe_task(task, session, caller)


async def _wait(call: Call, session: Session, caller: RequestContext, task: Task, seconds: float) -> None:
    """Wait until the call has ended, asks a question that this caller accepts, or the time is over."""
    clock, over_at = session.clock, session.clock.monotonic() + seconds
    while call.finished is not None and not call.finished.done() and not _questions_for(caller, session, task):
        try:
            await within(clock, max(0.0, over_at - clock.monotonic()), session.activity.next_wake().next_event)
        except TimeoutError:
            return


def _take_answers(following: InputRound, session: Session, caller: RequestContext, task: Task) -> str | None:
    """Pass the answers on. Ignore answers to questions that are not open.

    Return None on success, the problem of an unusable answer, or "" if a question was dismissed unread.
    """
    seconds = session.clock.now().timestamp() - following.asked_at
    left_unread = False
    for question in _open_questions(session, task):
        if question.request_id in following.responses:
            answer = following.responses[question.request_id]
            known = session.questions.attendance_of(caller.client_key)
            learned, is_from_person = read_attendance(known, answer, seconds)
            if learned is not known:
                session.questions.remember_attendance(caller.client_key, learned)
            if not is_from_person and not session.notice_options.trusts_dismissals:
                session.questions.record_unread_dismissal(question, seconds)
                left_unread = True
                continue
            try:
                take_answer(session.questions, question, answer)
            except EmceepeeError as error:
                return str(error)
    return "" if left_unread else None


def _open_questions(session: Session, task: Task) -> list[Question]:
    asked = session.questions.open(QuestionKind.ELICITATION, task.server)
    return [question for question in asked if session.questions.is_of_task(question, task.task_id)]


def _questions_for(caller: RequestContext, session: Session, task: Task) -> list[Question]:
    """Return the task's questions that the caller accepts in a result."""
    options, questions = session.notice_options, session.questions
    if not options.asks_natively or not questions.is_any_open:
        return []
    is_unattended = questions.attendance_of(caller.client_key) is Attendance.UNATTENDED
    if is_unattended and not options.trusts_dismissals:
        return []
    capabilities = modern_capabilities(caller.request.params)
    modes = frozenset() if capabilities is None else declared_modes(capabilities.get("elicitation"))
    return [
        question
        for question in (_open_questions(session, task) if modes else ())
        if mode_of(question) in modes and request_params(question) is not None
    ]


def _seal(session: Session, named: str, params: JsonObject) -> str:
    """Return a MAC of the task, the time, and the call. The state is then invalid in other sessions and other calls."""
    sealed = json.dumps([named, params.get("name"), params.get("arguments")], sort_keys=True)
    key = session.profile.secret.encode()
    return blake2b(sealed.encode(), key=key, digest_size=16, person=_PURPOSE).hexdigest()
