"""Asking the client something in the middle of a tool, in the manner of either protocol era."""

from typing import Any, TypeVar

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context = ServerRequestContext[Any]
AnswerT = TypeVar("AnswerT", types.ElicitResult, types.CreateMessageResult)


class CannotAsk(Exception):
    """The client did not say that it can be asked this."""


class Unanswered(Exception):
    """The tool cannot go on before the client has answered; a 2026-07-28 client then sends the whole call again."""

    def __init__(self, key: str, question: types.InputRequest) -> None:
        super().__init__(key)
        self.result = types.InputRequiredResult(input_requests={key: question})


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


async def elicit(
    ctx: Context, call: types.CallToolRequestParams, form: types.ElicitRequestFormParams
) -> types.ElicitResult:
    """Ask the user. Raises: CannotAsk, Unanswered."""
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.elicitation is None:
        raise CannotAsk("This client cannot be asked: it did not declare the elicitation capability.")
    return await _ask(ctx, call, types.ElicitRequest(params=form), types.ElicitResult)


async def sample(
    ctx: Context, call: types.CallToolRequestParams, wish: types.CreateMessageRequestParams
) -> types.CreateMessageResult:
    """Ask the client's model. Raises: CannotAsk, Unanswered."""
    capabilities = ctx.session.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        raise CannotAsk("This client lends no model: it did not declare the sampling capability.")
    return await _ask(ctx, call, types.CreateMessageRequest(params=wish), types.CreateMessageResult)


async def _ask(
    ctx: Context,
    call: types.CallToolRequestParams,
    question: types.ElicitRequest | types.CreateMessageRequest,
    kind: type[AnswerT],
) -> AnswerT:
    if not is_modern(ctx):
        related = ServerMessageMetadata(related_request_id=ctx.request_id)
        return await ctx.session.send_request(question, kind, metadata=related)
    answer = (call.input_responses or {}).get(question.method)
    if not isinstance(answer, kind):
        raise Unanswered(question.method, question)
    return answer
