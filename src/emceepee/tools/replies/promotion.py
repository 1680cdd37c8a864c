"""The reply to a call that has become a task."""

from collections.abc import Collection, Mapping
from typing import NotRequired, TypedDict, cast

from emceepee.clock import iso
from emceepee.sessions.events.buffers import cut
from emceepee.sessions.session import Session
from emceepee.sessions.views import (
    LONGEST_MESSAGE,
    PendingQuestion,
    TaskSummary,
    question_details,
    question_summary,
    task_summary,
)
from emceepee.state.question import Question, QuestionKind
from emceepee.state.task import Task
from emceepee.surface import FORM, call_to
from emceepee.tools.content import text_block
from emceepee.tools.declaration.declaration import Mentions, OwnResult
from emceepee.tools.replies.form_text import form_text, json_text
from emceepee.tools.replies.notices import (
    EVENT_NOTICE_BYTES,
    MOST_QUESTIONS,
    pending_client,
    split_questions,
    unread_note,
)
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

MOST_TASKS = 10  # of one server that a reply lists; list_tasks returns all


class ProxyTask(TypedDict):
    """The task that a call became."""

    task_id: str
    status: str
    created_at: str
    server: str
    tool: str


class PendingOnServer(TypedDict):
    """The server's running tasks and its open questions."""

    server: str
    tasks: list[TaskSummary]
    elicitations_for_server: list[PendingQuestion]
    sampling_requests_for_server: list[PendingQuestion]
    more_for_server: NotRequired[JsonObject]


class Promotion(TypedDict):
    """The structured content of a promoted call's reply."""

    proxy_task: ProxyTask
    pending_on_server: PendingOnServer
    next: str


def describe_promotion(
    task: Task, session: Session, problem: str = "", asked_for_it: list[Question] | None = None
) -> OwnResult[Promotion]:
    """Return a text with the next steps, and the same facts as JSON in the documented shape.

    The text begins with `problem`, if there is one. The text of a question occurs once in the content blocks and once
    in the structured content.
    """
    others: list[Question] = []
    if asked_for_it is None:
        call = session.calls.find_task(task.task_id)
        waiting = session.questions.open(server=task.server)
        asked, others = split_questions(session, waiting, None if call is None else call.conversation)
        shown = [item for item in asked if session.questions.is_of_task(item, task.task_id)][:MOST_QUESTIONS]
    else:  # a script: its questions come from the servers that it calls
        asked, shown = asked_for_it, asked_for_it[:MOST_QUESTIONS]
    native = session.questions.native
    shown_by_client = frozenset(
        question.request_id for question in shown if native is not None and native.is_asked(question)
    )
    began = [problem] if problem else []
    began.append(f"The call continues as task {task.task_id}.")
    unread = session.questions.take_unread_dismissals(shown)
    lines = [*began, *(_asking(question, shown_by_client, unread) for question in shown), _next(task)]
    value: JsonObject = {
        "proxy_task": {
            "task_id": task.task_id,
            "status": str(task.status),
            "created_at": iso(task.created_at),
            "server": task.server,
            "tool": task.tool,
        },
        "pending_on_server": {
            "server": task.server,
            "tasks": [task_summary(item) for item in session.tasks.working(task.server)[-MOST_TASKS:]],
        },
    }
    bare = pending_client(asked, others=others, bare={question.request_id for question in asked})
    whole = pending_client(asked, others=others, detailed={question.request_id for question in shown})
    steps = [*(_answer_call(question, shown_by_client, unread) for question in shown), _next(task)]
    return OwnResult(
        [text_block("\n".join(lines)), text_block(encode_text(_with_questions(value, bare)))],
        cast(Promotion, _with_questions(value, whole) | {"next": " ".join(steps)}),
        Mentions(created_task=task.task_id, questions=frozenset(question.request_id for question in shown)),
    )


def _with_questions(value: JsonObject, pending: JsonObject) -> JsonObject:
    questions = {f"{key}_for_server": entries for key, entries in pending.items()}
    return value | {"pending_on_server": value["pending_on_server"] | questions}


def _next(task: Task) -> str:
    wait = f"{call_to('get_task_result', task_id=task.task_id)} waits for the result"
    return f"{wait}; {call_to('await_activity')} waits for the next event."


def _asking(question: Question, shown_by_client: Collection[str], unread: Mapping[str, float]) -> str:
    """Return a question with everything needed to answer it. The server's text is quoted, because it is untrusted."""
    room = EVENT_NOTICE_BYTES
    details, how = question_details(question), _answer_call(question, shown_by_client, unread)
    if question.kind is QuestionKind.SAMPLING:
        return f'"{question.server}" asks for a completion: {json_text(details, room, "get_sampling_requests")}\n{how}'
    message = encode_text(question_summary(question).get("message", ""))
    if question.params.get("mode") == "url":
        link = encode_text(cut(details.get("url"), LONGEST_MESSAGE * 4))
        return f'"{question.server}" asks the user: {message} at {link}\n{how}'
    return f'"{question.server}" asks the user: {message} {form_text(details.get("requestedSchema"), room)}\n{how}'


def _answer_call(question: Question, shown_by_client: Collection[str], unread: Mapping[str, float]) -> str:
    """Return the tool call that answers the question."""
    if question.kind is QuestionKind.SAMPLING:
        asked = question.request_id
        call = call_to("respond_to_sampling", request_id=asked, role="assistant", content=..., model=...)
        return f"Answer: {call}."
    given = {} if question.params.get("mode") == "url" else {"content": FORM}
    call = call_to("respond_to_elicitation", request_id=question.request_id, action="accept", **given)
    if question.request_id in shown_by_client:
        return f"The client is already asking the user and passes the answer on. Otherwise: {call}."
    note = f"{unread_note(unread[question.request_id])} " if question.request_id in unread else ""
    return f'{note}Ask the user, then answer: {call}, or action="decline".'
