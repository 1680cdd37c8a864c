"""Tools to list and answer servers' questions: elicitations (for the user) and sampling requests (for the model)."""

from typing import Annotated, Any, Literal, TypedDict, cast

from pydantic import Field, WithJsonSchema

from emceepee.errors import InvalidArguments
from emceepee.sessions.session import Session
from emceepee.sessions.views import Described, ElicitationView, QuestionView, question_view
from emceepee.state.question import QuestionKind
from emceepee.tools.content import text_block
from emceepee.tools.declaration.declaration import AnyServer, Brief, Mentions, OwnResult, Params, tool
from emceepee.tools.declaration.hints import CORE, READS_RECORDS, ToolEffect, found_by
from emceepee.tools.entry_pages import PAGING, Detailed, Entries, Rest, fields, page
from emceepee.tools.request_context import RequestContext
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

_BLOCK_KEYS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "tool_use": ("id", "name", "input"),
    "tool_result": ("toolUseId", "content"),
}


_TEXT_OR_BLOCKS: JsonObject = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "object", "additionalProperties": True}}]
}
QuestionId = Annotated[str, Field(description="Its requestId")]


class RespondToSampling(Params):
    """Parameters: a completion."""

    request_id: QuestionId
    role: Literal["user", "assistant"] = Field(description="As a rule assistant")
    content: Annotated[str | dict[str, Any] | list[dict[str, Any]], WithJsonSchema(_TEXT_OR_BLOCKS)] = Field(
        description="Text, or content blocks", repr=False
    )
    model: str = Field(description="Model that wrote it")
    stop_reason: str | None = Field(None, description="endTurn, maxTokens, stopSequence, toolUse")


class RespondToElicitation(Params):
    """Parameters: an answer to a question."""

    request_id: str = Field(description="requestId in pending_client_action")
    action: Literal["accept", "decline", "cancel"] = Field(description="cancel: the user decided nothing")
    content: dict[str, Any] | None = Field(
        None, description="With accept: the form's values; none for a url", repr=False
    )


class ListQuestions(Detailed):
    """Parameters: questions of one server, or of all."""

    server: AnyServer = None


_SUMMARY = fields("message", "mode", "expiresAt")
QUESTIONS = {
    QuestionKind.ELICITATION: Entries("get_elicitations", "requests", "requestId", _SUMMARY),
    QuestionKind.SAMPLING: Entries("get_sampling_requests", "requests", "requestId", _SUMMARY),
}


class CancelRequest(Params):
    """Parameters: a request to cancel."""

    request_id: QuestionId
    reason: str | None = Field(None, description="Why")


class Responded(TypedDict):
    """The question that was answered."""

    responded: str


class Elicited(Responded):
    """With `accept`, the content is checked against the form first. If it is invalid, the error names the fields, and
    the question stays open."""

    action: str


class Cancelled(TypedDict):
    """The question that was cancelled."""

    cancelled: str


class Elicitations(Rest):
    """`mode` is `form` or `url`. A server may say more. `otherConversation` marks a question that a call of
    [another conversation](../explanation/sessions.md#conversations) of the client asked."""

    requests: list[ElicitationView]


SamplingView = Annotated[QuestionView, Described("{requestId, server, timestamp, expiresAt, …, callId?, taskId?}")]


class SamplingRequests(Rest):
    """`…` are the fields of the server's own request."""

    requests: list[SamplingView]


@tool(
    title="List sampling requests",
    effect=READS_RECORDS,
    load=found_by("pending sampling completion requests"),
    unlisted=PAGING,
)
async def get_sampling_requests(
    params: ListQuestions, session: Session, caller: RequestContext
) -> OwnResult[SamplingRequests]:
    """List servers' requests for a completion by you: messages, systemPrompt, maxTokens."""
    return cast(OwnResult[SamplingRequests], _list_questions(QuestionKind.SAMPLING, params, session, caller))


@tool(
    title="Answer a sampling request",
    effect=ToolEffect(destructive=False),
    load=found_by("answer sampling completion request"),
)
async def respond_to_sampling(params: RespondToSampling, session: Session) -> Responded:
    """Answer a sampling request with a completion."""
    answer: JsonObject = {"role": params.role, "content": _content(params.content), "model": params.model}
    if params.stop_reason is not None:
        answer["stopReason"] = params.stop_reason
    session.questions.answer_sampling(params.request_id, answer)
    return {"responded": params.request_id}


@tool(title="Refuse a sampling request", effect=ToolEffect(), load=found_by("refuse sampling completion request"))
async def cancel_sampling_request(params: CancelRequest, session: Session) -> Cancelled:
    """Refuse a sampling request."""
    session.questions.cancel(params.request_id, QuestionKind.SAMPLING, params.reason)
    return {"cancelled": params.request_id}


@tool(
    title="List servers' questions",
    effect=READS_RECORDS,
    load=found_by("pending questions forms elicitation"),
    unlisted=PAGING,
)
async def get_elicitations(params: ListQuestions, session: Session, caller: RequestContext) -> OwnResult[Elicitations]:
    """List what servers ask the user: requestId, message, and a form (requestedSchema) or url."""
    return cast(OwnResult[Elicitations], _list_questions(QuestionKind.ELICITATION, params, session, caller))


@tool(
    title="Answer a server's question",
    effect=ToolEffect(),
    load=CORE,
    brief=Brief("Answer a server's question with what the user decided; its task goes on."),
)
async def respond_to_elicitation(params: RespondToElicitation, session: Session) -> Elicited:
    """Answer a server's question with what the user decided; its task goes on. get_elicitations has the form."""
    session.questions.answer_elicitation(params.request_id, params.action, params.content)
    return {"responded": params.request_id, "action": params.action}


@tool(title="Dismiss a server's question", effect=ToolEffect(), load=found_by("dismiss question elicitation"))
async def cancel_elicitation_request(params: CancelRequest, session: Session) -> Cancelled:
    """Dismiss a server's question."""
    session.questions.cancel(params.request_id, QuestionKind.ELICITATION, params.reason)
    return {"cancelled": params.request_id}


def _list_questions(
    kind: QuestionKind, params: ListQuestions, session: Session, caller: RequestContext
) -> OwnResult[JsonObject]:
    if params.server is not None:
        session.connection(params.server)
    waiting = session.questions.open(kind, params.server)
    entries = [
        cast(JsonObject, question_view(item, task_id=session.tasks.id_for(item)))
        | ({} if session.questions.is_seen_in(item, caller.conversation) else {"otherConversation": True})
        for item in waiting
    ]
    listed = page(entries, params, QUESTIONS[kind], room=session.limits.list_reply_bytes)
    told = [str(entry["requestId"]) for entry in listed["requests"]] if params.detail == "full" else []
    mentions = Mentions(questions=frozenset(told))
    return OwnResult([text_block(encode_text(listed))], listed, mentions)


def _content(given: str | JsonObject | list[JsonObject]) -> JsonObject | list[JsonObject]:
    """Return the content in the protocol's form: one block by itself, several blocks as a list."""
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
