"""Requests of 2026-07-28 to a replayed server over HTTP."""

from emceepee.clock import Clock
from emceepee.lifecycle import TaskOwner
from emceepee.miniserver.server_conversation import ServerConversation
from emceepee.replay.response_channel import ReplayChannel
from emceepee.server.http.exchange import HttpRequest, StatelessExchange
from emceepee.server.http.stateless_requests import accept_request, http_status


class StatelessReplay:
    """All requests of this era share one conversation, because nothing distinguishes its clients."""

    def __init__(self, conversation: ServerConversation, clock: Clock) -> None:
        self._conversation, self._clock = conversation, clock
        self._tasks = TaskOwner("replay-stateless")

    async def post(self, value: object, http: HttpRequest) -> None:
        """Serve one decoded body."""
        if (request := await accept_request(value, http)) is None:
            return

        def cancel() -> None:
            serving.cancel()

        exchange = StatelessExchange(http, clock=self._clock, tasks=self._tasks, on_gone=cancel)
        channel = ReplayChannel(exchange, self._clock, takes_questions=False)  # here a result carries questions
        serving = self._conversation.start(request, channel)
        answer = await channel.wait_for_answer(request.request_id, serving)
        await exchange.answer(answer, http_status(answer))

    def end_listens(self) -> None:
        self._conversation.end_listens()

    def cancel_requests(self) -> None:
        self._conversation.cancel_requests()

    async def close(self) -> None:
        await self._conversation.close()
        await self._tasks.close()
