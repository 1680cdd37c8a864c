"""A tool's outcome as the result that goes back to the caller, with the news that every reply carries."""

from emceepee.codec import encode_text
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.sessions.views import event_view, pending_client
from emceepee.tools.declaration import BackendResult, Outcome, Spoken


def reply(outcome: Outcome) -> JsonObject:
    """emceepee's own results as text and as structured content; a backend's result as it came."""
    match outcome:
        case BackendResult(result):
            return result
        case Spoken(sentence, value):
            return {"content": [_text(sentence), _text(encode_text(value))], "structuredContent": value}
        case value:
            return {"content": [_text(encode_text(value))], "structuredContent": value}


def error_reply(error: EmceepeeError) -> JsonObject:
    """The sentence for the model, the code for a program."""
    return {"content": [_text(str(error))], "isError": True, "structuredContent": {"error": error.body()}}


def with_notices(result: JsonObject, session: Session) -> JsonObject:
    """The result, and behind it what is new and what waits on the caller. Events taken here are delivered.

    Nothing may be awaited between this and the writing of the reply: a cancelled reply must not take events with it.
    """
    if not session.questions.is_any_open and not session.activity.has_news:
        return result
    questions = session.questions.open()
    blocks: list[JsonObject] = []
    news = session.activity.take()
    if news.events or news.dropped:
        told: JsonObject = {"events_since_last_response": [event_view(event) for event in news.events]}
        if news.dropped:
            told["events_dropped"] = news.dropped
        blocks.append(_text(encode_text(told)))
    if questions:
        blocks.append(_text(encode_text({"pending_client_action": pending_client(questions)})))
    content = result.get("content")
    return {**result, "content": [*(content if isinstance(content, list) else []), *blocks]}


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}
