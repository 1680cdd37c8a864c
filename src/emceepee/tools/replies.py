"""A tool's outcome as the result that goes back to the caller, with the notices that every reply carries."""

from collections.abc import Sequence

from emceepee.codec import encode_text
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.tools.content import text_block
from emceepee.tools.declaration import NO_MENTIONS, BackendResult, InputRequired, Mentions, OnEvents, Outcome, OwnResult
from emceepee.tools.notices import take_notices

OWN_KEY = "emceepee"  # under which notices stand in a backend's structured content
MOVED: JsonObject = {
    "session_moved": "Another replica of emceepee took this session over while this was served. What servers told here "
    "meanwhile is not kept: look how things stand."
}


def reply(outcome: Outcome) -> JsonObject:
    """emceepee's own results as text and as structured content; a backend's result as it came."""
    match outcome:
        case BackendResult(result) | InputRequired(result):
            return result
        case OwnResult(content, value, is_error=is_error):
            return {"content": content, "structuredContent": value} | ({"isError": True} if is_error else {})
        case value:
            return {"content": [text_block(encode_text(value))], "structuredContent": value}


def error_reply(error: EmceepeeError) -> JsonObject:
    """The sentence for the model, the code for a program."""
    return {"content": [text_block(str(error))], "isError": True, "structuredContent": {"error": error.reply_body()}}


def with_notices(
    result: JsonObject, session: Session, outcome: Outcome | EmceepeeError, on_events: OnEvents | None = None
) -> JsonObject:
    """The result, and behind it what is new and what waits on the caller. `on_events` hears which events it takes.

    Nothing may be awaited between this and the writing of the reply: a cancelled reply must not take events with it.
    """
    if not session.questions.is_any_open and not session.activity.has_news:
        return result
    if isinstance(outcome, InputRequired):
        return result  # it has no content; what is new comes with the answer to the next round
    notices = take_notices(session, _mentions_of(outcome))
    if on_events is not None:
        on_events(session, notices.taken)
    return _carrying(result, session, outcome, notices.blocks, notices.structured) if notices.structured else result


def with_move(result: JsonObject, session: Session, outcome: BackendResult | EmceepeeError) -> JsonObject:
    """The result, and behind it that another replica has the session by now, if it does not say so itself."""
    if isinstance(outcome, EmceepeeError) and outcome.details.get("reason") == "replica":
        return result
    return _carrying(result, session, outcome, [MOVED], MOVED)


def _carrying(
    result: JsonObject,
    session: Session,
    outcome: Outcome | EmceepeeError,
    blocks: Sequence[JsonObject],
    structured: JsonObject,
) -> JsonObject:
    content = result.get("content")
    added = [text_block(encode_text(block)) for block in blocks]
    carrying = {**result, "content": [*(content if isinstance(content, list) else []), *added]}
    if session.structured_notices:
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
    """For clients that show a model nothing else where there is structured content."""
    structured = result.get("structuredContent")
    if not isinstance(structured, dict) or (is_backends and OWN_KEY in structured):
        return
    result["structuredContent"] = structured | ({OWN_KEY: notices} if is_backends else notices)
