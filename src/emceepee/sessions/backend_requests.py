"""Answer requests of backends: return roots at once, and pass questions to the caller."""

from emceepee.backends.link import RpcError, ServerLost
from emceepee.sessions.call import Call
from emceepee.sessions.calls import Calls
from emceepee.sessions.questions.question_origins import QuestionOrigins
from emceepee.sessions.questions.questions import QuestionClosed, Questions, TooManyQuestions
from emceepee.state.limits import Limits
from emceepee.state.question import Gone, QuestionKind
from emceepee.wire.json_rpc import SERVER_ERROR
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import METHOD_NOT_FOUND

REFUSED = -1  # the code for "the user said no" in the protocol's own examples

_KINDS = {"elicitation/create": QuestionKind.ELICITATION, "sampling/createMessage": QuestionKind.SAMPLING}


class BackendRequests:
    """Answers the requests of all backends of one session."""

    def __init__(self, questions: Questions, calls: Calls, limits: Limits) -> None:
        self._questions, self._calls, self._limits = questions, calls, limits

    async def answer(
        self,
        server: str,
        method: str,
        params: JsonObject,
        origin: Call | None,
        *,
        roots: list[JsonObject],
        seconds: float | None,
    ) -> JsonObject:
        """Answer one request of a backend. A question times out after `seconds`, or after the limit for questions.

        Raises:
            RpcError: there will be no answer.
        """
        if method == "roots/list" and roots:  # without roots, none were declared
            return {"roots": roots}
        kind = _KINDS.get(method)
        if kind is None:
            raise RpcError({"code": METHOD_NOT_FOUND, "message": f"emceepee does not serve {method}"})
        if seconds is None:
            seconds = self._limits.question_seconds
        call_id = None if origin is None else self._calls.identify(origin)
        origins = QuestionOrigins(server, self._calls.possible_origins(server, origin))
        try:
            question = self._questions.ask(server, kind, params, call_id=call_id, seconds=seconds, origins=origins)
        except TooManyQuestions as full:
            words = f"The {kind} request is not put to anyone: {full}. Ask again later."
            raise RpcError({"code": SERVER_ERROR, "message": words}) from None
        native = self._questions.native
        asker = None if native is None else native.ask(question, origins.calls)
        self._calls.promote_for_question(origins.calls, asked_by=asker)
        try:
            with origins:
                return await self._questions.wait_for_answer(question)
        except QuestionClosed as gone:
            if kind is QuestionKind.ELICITATION and gone.why is not Gone.DISCONNECTED:
                return {"action": "cancel"}
            code = REFUSED if gone.why is Gone.CANCELLED else SERVER_ERROR
            condition = ServerLost if gone.why is Gone.DISCONNECTED else RpcError
            raise condition({"code": code, "message": f"The {kind} request has no answer: {gone}"}) from None
