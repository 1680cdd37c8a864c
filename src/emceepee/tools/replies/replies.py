"""Converts a tool's outcome to the result for the caller, with the notices that every reply carries."""

from collections.abc import Sequence

from emceepee.errors import EmceepeeError
from emceepee.sessions.session import Session
from emceepee.tools.content import LARGE_RESULT, text_block
from emceepee.tools.declaration.declaration import (
    NO_MENTIONS,
    BackendResult,
    InputRequired,
    Mentions,
    Outcome,
    OwnResult,
    Tool,
)
from emceepee.tools.replies.client_traits import traits_of
from emceepee.tools.replies.notices import MOVED, UNSAVED, notice_text, take_notices
from emceepee.tools.request_context import RequestContext
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

OWN_KEY = "emceepee"  # the key of notices in a backend's structured content
MOVE_NOTICE: JsonObject = {
    MOVED: "Another replica of emceepee took this session over during this call. Messages that servers sent here since "
    "then are lost: check the status of your tasks and servers."
}


UNSAVED_NOTICE: JsonObject = {
    UNSAVED: "emceepee cannot save its state now. The change or result that this reply names is in memory only: it is "
    "saved once saving works again, and lost if emceepee ends before. The log of emceepee says why."
}


def reply(outcome: Outcome) -> JsonObject:
    """Return emceepee's own result as text and as structured content, and a backend's result unchanged."""
    match outcome:
        case BackendResult(result) | InputRequired(result):
            return result
        case OwnResult(content, value, is_error=is_error):
            return {"content": content, "structuredContent": value} | ({"isError": True} if is_error else {})
        case value:
            return {"content": [text_block(encode_text(value))], "structuredContent": value}


def error_reply(error: EmceepeeError) -> JsonObject:
    """Return an error result, with the message as text for models and the code for programs."""
    return {"content": [text_block(str(error))], "isError": True, "structuredContent": {"error": error.reply_body()}}


def with_notices(
    result: JsonObject, session: Session, outcome: Outcome | EmceepeeError, caller: RequestContext
) -> JsonObject:
    """Append notices of new events and open questions to the result, and record the events in the caller's context.

    Do not await anything between this call and writing the reply: a reply cancelled in between would lose its events.
    """
    if not session.questions.is_any_open and not session.activity.has_news:
        return result
    if isinstance(outcome, InputRequired):
        return result  # it has no content blocks; the reply to the repeated call carries the notices
    notices = take_notices(session, _mentions_of(outcome), conversation=caller.conversation)
    caller.record_events(session, notices.receipt)
    if not notices.structured:
        return result
    return _carrying(result, outcome, notices.blocks, notices.structured if _are_structured(session, caller) else None)


def with_move(
    result: JsonObject, session: Session, outcome: BackendResult | EmceepeeError, caller: RequestContext
) -> JsonObject:
    """Append the notice that another replica has taken over the session, unless the error already states it."""
    if isinstance(outcome, EmceepeeError) and outcome.details.get("reason") == "replica":
        return result
    return _carrying(result, outcome, [MOVE_NOTICE], MOVE_NOTICE if _are_structured(session, caller) else None)


def promises_durably(tool: Tool, outcome: Outcome | EmceepeeError) -> bool:
    """Whether the reply promises that something is stored: a change, a task, or a large result behind a handle."""
    match outcome:
        case BackendResult() | InputRequired() | EmceepeeError():
            return False
        case OwnResult(value=value, mentions=mentions):
            return tool.is_durable or mentions.created_task is not None or LARGE_RESULT in value
        case _:
            return tool.is_durable


def with_unsaved(
    result: JsonObject, session: Session | None, outcome: Outcome | EmceepeeError, caller: RequestContext
) -> JsonObject:
    """Append the notice that emceepee currently cannot save the change or the result in the reply."""
    is_structured = session is None or _are_structured(session, caller)
    return _carrying(result, outcome, [UNSAVED_NOTICE], UNSAVED_NOTICE if is_structured else None)


def _are_structured(session: Session, caller: RequestContext) -> bool:
    """Return whether the structured content carries notices as well."""
    structured = session.notice_options.structured
    return not traits_of(caller.client_name).shows_both_copies if structured is None else structured


def _carrying(
    result: JsonObject,
    outcome: Outcome | EmceepeeError,
    blocks: Sequence[JsonObject],
    structured: JsonObject | None,
) -> JsonObject:
    """Return the result with more blocks, and with `structured` in its structured content unless that is None."""
    content = result.get("content")
    added = [text_block(notice_text(block)) for block in blocks]
    carrying = {**result, "content": [*(content if isinstance(content, list) else []), *added]}
    if structured is not None:
        _add_to_structured(carrying, structured, is_backends=isinstance(outcome, BackendResult))
    return carrying


def _mentions_of(outcome: Outcome | EmceepeeError) -> Mentions:
    match outcome:
        case BackendResult(mentions=mentions) | OwnResult(mentions=mentions):
            return mentions
        case EmceepeeError(details={"taskId": str(task_id)}):
            return Mentions(ended_task=task_id)
        case _:
            return NO_MENTIONS


def _add_to_structured(result: JsonObject, notices: JsonObject, *, is_backends: bool) -> None:
    """Add the notices for clients that show a model only the structured content, if there is any."""
    structured = result.get("structuredContent")
    if not isinstance(structured, dict) or (is_backends and OWN_KEY in structured):
        return
    result["structuredContent"] = structured | ({OWN_KEY: notices} if is_backends else notices)
