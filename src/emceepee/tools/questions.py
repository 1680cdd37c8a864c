"""Tools to see and answer what servers ask: elicitations (of the user) and sampling requests (of the model)."""

from typing import Any, Literal

from pydantic import Field

from emceepee.codec import encode_text
from emceepee.errors import InvalidArguments
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.sessions.views import question_view
from emceepee.state.question import QuestionKind
from emceepee.tools.content import text_block
from emceepee.tools.declaration import OwnResult, Params, Told, tool
from emceepee.tools.observation import FromServer

_BLOCK_KEYS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("toolUseId", "content"),
}


class RespondToSampling(Params):
    """A completion."""

    request_id: str
    role: Literal["user", "assistant"]
    content: str | dict[str, Any] | list[dict[str, Any]] = Field(description="Text, or content blocks")
    model: str = Field(description="The model that wrote it")
    stop_reason: str | None = Field(None, description="endTurn, maxTokens, stopSequence, toolUse")


class RespondToElicitation(Params):
    """An answer to a question."""

    request_id: str
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = Field(None, description="With accept: the form's fields", repr=False)


class CancelRequest(Params):
    """A request that will get no answer."""

    request_id: str
    reason: str | None = None


@tool
async def get_sampling_requests(params: FromServer, session: Session) -> OwnResult:
    """List the servers' requests for a completion by the model."""
    return _listed(QuestionKind.SAMPLING, params.server, session)


@tool
async def respond_to_sampling(params: RespondToSampling, session: Session) -> JsonObject:
    """Answer a sampling request."""
    answer: JsonObject = {"role": params.role, "content": _content(params.content), "model": params.model}
    if params.stop_reason is not None:
        answer["stopReason"] = params.stop_reason
    session.questions.answer_sampling(params.request_id, answer)
    return {"responded": params.request_id}


@tool
async def cancel_sampling_request(params: CancelRequest, session: Session) -> JsonObject:
    """Refuse a sampling request."""
    session.questions.cancel(params.request_id, QuestionKind.SAMPLING, params.reason)
    return {"cancelled": params.request_id}


@tool
async def get_elicitations(params: FromServer, session: Session) -> OwnResult:
    """List the questions servers ask the user, with their forms or links."""
    return _listed(QuestionKind.ELICITATION, params.server, session)


@tool
async def respond_to_elicitation(params: RespondToElicitation, session: Session) -> JsonObject:
    """Answer a server's question with what the user decided."""
    session.questions.answer_elicitation(params.request_id, params.action, params.content)
    return {"responded": params.request_id, "action": params.action}


@tool
async def cancel_elicitation_request(params: CancelRequest, session: Session) -> JsonObject:
    """Dismiss a server's question."""
    session.questions.cancel(params.request_id, QuestionKind.ELICITATION, params.reason)
    return {"cancelled": params.request_id}


def _listed(kind: QuestionKind, server: str | None, session: Session) -> OwnResult:
    if server is not None:
        session.connection(server)
    waiting = session.questions.open(kind, server)
    listed = {"requests": [question_view(item, task_id=session.calls.task_of(item)) for item in waiting]}
    told = Told(questions=frozenset(item.request_id for item in waiting))
    return OwnResult([text_block(encode_text(listed))], listed, told)


def _content(given: str | JsonObject | list[JsonObject]) -> JsonObject | list[JsonObject]:
    """As the protocol writes it: one block by itself, several as a list."""
    if isinstance(given, str):
        return {"type": "text", "text": given}
    blocks = given if isinstance(given, list) else [given]
    if not blocks:
        raise InvalidArguments("content: give text, or at least one content block.")
    for index, block in enumerate(blocks):
        missing = [key for key in ("type", *_BLOCK_KEYS.get(str(block.get("type")), ())) if key not in block]
        if missing:
            raise InvalidArguments(
                f"content[{index}]: a {block.get('type', 'content')} block needs {', '.join(missing)}."
            )
    return blocks[0] if len(blocks) == 1 else blocks
