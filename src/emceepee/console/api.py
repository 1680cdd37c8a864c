"""The data and actions of the page: each route runs one query or action on a session of the logged-in principal."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from emceepee.clock import Clock, iso
from emceepee.console import server_actions
from emceepee.console.console_request import ConsoleRequest, Route
from emceepee.console.feed import Feed, SessionSource
from emceepee.console.other_sessions import OtherSessions, SessionNotHere
from emceepee.console.overview import Memory, Overview, joined_overview
from emceepee.console.peers import NoPeers, PeerConsoles
from emceepee.console.rows import detail, joined_waterfall, waterfall
from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.sessions.session import Session
from emceepee.sessions.views import task_view, timer_view
from emceepee.state.limits import Limits
from emceepee.state.question import QuestionKind
from emceepee.telemetry.redaction import redacted
from emceepee.telemetry.value_preview import preview
from emceepee.web.asgi import respond_json
from emceepee.web.streams import EventStreamWriter
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

BY_A_PERSON = "human"  # the model name of a completion that a person wrote
SHOWN_BYTES = 256 << 10  # of a task's result
Action = Callable[[Session, JsonObject], Awaitable[JsonObject]]


@dataclass(frozen=True, slots=True)
class _OpenFeed:
    feed: Feed
    request: ConsoleRequest


class ConsoleApi:
    """The data routes. None is open: each is served for a principal only."""

    def __init__(
        self,
        source: SessionSource,
        clock: Clock,
        limits: Limits,
        peers: PeerConsoles | None = None,
        *,
        memory: Memory = lambda: None,
    ) -> None:
        """`peers` have other sessions. `memory` is the process's memory use, if every user may see it."""
        self._source, self._clock, self._limits = source, clock, limits
        self._peers = peers or NoPeers()
        self._others = OtherSessions(self._peers, lambda: [each.feed.reporters for each in self._streams.values()])
        self._tasks = TaskOwner("console")
        self._overview = Overview(source, clock, self._tasks, memory)
        self._streams: dict[EventStreamWriter, _OpenFeed] = {}
        self._is_ending = False

    def routes(self) -> tuple[Route, ...]:
        queries = {
            "/console/request": _request,
            "/console/task": _task,
            "/console/server-settings": server_actions.show_settings,
        }
        actions = {
            "/console/answer": _answer,
            "/console/complete": _complete,
            "/console/refuse": _refuse,
            "/console/cancel-task": _cancel_task,
            "/console/reconnect": server_actions.reconnect,
            "/console/record": server_actions.begin_recording,
            "/console/end-recording": server_actions.end_recording,
            "/console/disable-server": server_actions.disable,
            "/console/enable-server": server_actions.enable,
            "/console/delete-timer": _delete_timer,
            "/console/end-session": self._end_session,
        }
        return (
            Route("GET", "/waterfall/json", self._waterfall),
            Route("GET", "/console/feed", self._feed),
            Route("GET", "/console/overview", self._show_overview),
            *(Route("GET", path, partial(self._run_query, run)) for path, run in queries.items()),
            *(Route("POST", path, partial(self._run_action, run)) for path, run in actions.items()),
        )

    def end_streams(self) -> None:
        """End all streams before the shutdown of the server."""
        self._is_ending = True
        for stream in list(self._streams):
            stream.stop()

    def end_stale_streams(self) -> None:
        """End the streams of users who are no longer logged in."""
        for stream, each in list(self._streams.items()):
            if not each.request.is_logged_in():
                stream.stop()

    async def close(self) -> None:
        self.end_streams()
        await self._tasks.close(within=CLOSE_IDLE_SECONDS)

    async def _feed(self, request: ConsoleRequest) -> None:
        await self._confirm()
        self._overview.look(request.principal or "")  # so that samples exist when the user opens the overview
        peers = NoPeers() if request.is_from_peer else self._peers
        feed = Feed(self._source, request.principal or "", self._clock, self._limits, peers)
        stream = EventStreamWriter(request.send, request.receive, feed.frames(), tasks=self._tasks)
        self._streams[stream] = _OpenFeed(feed, request)
        if self._is_ending:
            stream.stop()
        try:
            await stream.wait_until_finished()
        finally:
            del self._streams[stream]

    async def _waterfall(self, request: ConsoleRequest) -> None:
        await self._confirm()
        own = await waterfall(self._source.sessions_of(request.principal or ""), iso(self._clock.now()))
        documents = [] if request.is_from_peer else await self._others.documents(request)
        await respond_json(request.send, 200, joined_waterfall(own, documents) if documents else own)

    async def _show_overview(self, request: ConsoleRequest) -> None:
        await self._confirm()
        own = self._overview.show(request.principal or "")
        documents = [] if request.is_from_peer else await self._others.documents(request)
        await respond_json(request.send, 200, joined_overview(own, documents) if documents else own)

    async def _run_query(self, run: Action, request: ConsoleRequest) -> None:
        session_id = request.query.get("session")
        session = await self._find(request, session_id)
        if session is None:
            await self._others.query(request, session_id)
        else:
            await respond_json(request.send, 200, await run(session, dict(request.query)))

    async def _run_action(self, run: Action, request: ConsoleRequest) -> None:
        given = await request.json()
        session = await self._find(request, given.get("session"))
        if session is None:
            await self._others.act(request, given.get("session"), encode(given))
        else:
            session.touch()
            await respond_json(request.send, 200, await run(session, given))

    async def _find(self, request: ConsoleRequest, session_id: object) -> Session | None:
        """Find a session; None if another replica may have it. Another principal's session counts as unknown.

        Raises:
            SessionNotHere: the session is not here, and other replicas must not be asked.
        """
        await self._confirm()
        for session in self._source.sessions_of(request.principal or ""):
            if session.session_id == session_id:
                return session
        if request.is_from_peer:
            raise SessionNotHere
        return None

    async def _confirm(self) -> None:
        """Confirm that no other replica has taken over the sessions here."""
        if not self._source.is_sure:
            await self._source.confirm()

    async def _end_session(self, session: Session, given: JsonObject) -> JsonObject:
        if not await self._source.end(session):
            raise EmceepeeError("This session ends with its process.", code=ErrorCode.NOT_ALLOWED)
        return {"ended": session.session_id}


async def _request(session: Session, given: JsonObject) -> JsonObject:
    span = session.journal.find(_text(given, "id"))
    if span is None:
        raise EmceepeeError("This request is no longer stored.", code=ErrorCode.REQUEST_NOT_FOUND)
    return detail(span, session)


async def _task(session: Session, given: JsonObject) -> JsonObject:
    task = session.tasks.get(_text(given, "id"))
    result, is_cut = preview(task.result, SHOWN_BYTES)
    return {"task": task_view(task), "result": redacted(result), "isCut": is_cut}


async def _answer(session: Session, given: JsonObject) -> JsonObject:
    request_id, action, content = _text(given, "requestId"), _text(given, "action"), given.get("content")
    if action not in ("accept", "decline", "cancel"):
        raise InvalidArguments("action: accept, decline or cancel.")
    if content is not None and not isinstance(content, dict):
        raise InvalidArguments("content: an object with the form's fields.")
    session.questions.answer_elicitation(request_id, action, content, by_another=True)
    return {"responded": request_id}


async def _complete(session: Session, given: JsonObject) -> JsonObject:
    request_id = _text(given, "requestId")
    content = {"type": "text", "text": _text(given, "text")}
    answer = {"role": "assistant", "content": content, "model": BY_A_PERSON, "stopReason": "endTurn"}
    session.questions.answer_sampling(request_id, answer, by_another=True)
    return {"responded": request_id}


async def _refuse(session: Session, given: JsonObject) -> JsonObject:
    request_id, reason = _text(given, "requestId"), given.get("reason")
    words = reason if isinstance(reason, str) and reason else "refused by a person"
    session.questions.cancel(request_id, QuestionKind.SAMPLING, words)
    return {"cancelled": request_id}


async def _cancel_task(session: Session, given: JsonObject) -> JsonObject:
    return {"task": task_view(session.calls.cancel_task(_text(given, "taskId")))}


async def _delete_timer(session: Session, given: JsonObject) -> JsonObject:
    return {"timer": timer_view(session.timers.delete(_text(given, "timerId")))}


def _text(given: JsonObject, key: str) -> str:
    """Raises: InvalidArguments."""
    value = given.get(key)
    if not isinstance(value, str):
        raise InvalidArguments(f"{key}: a string is needed.")
    return value
