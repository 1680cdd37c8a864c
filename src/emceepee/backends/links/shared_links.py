"""One link to a server for all sessions of a principal. Each session has a view, and receives only its own messages.

session ─ connection ─ LinkView ┐
    session ─ connection ─ LinkView ┼─ SharedLink ─ the link ─ the server
    session ─ connection ─ LinkView ┘

A view behaves like a link. Each session has its own connection, with its lists, subscriptions, and log level.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.link import Link, LinkError, LinkFailure, Listener, NoAccess, RpcError
from emceepee.backends.links.link_view import CallOrigin, LinkView
from emceepee.backends.links.shared_access import CURRENT_SOURCE, SharedAccess
from emceepee.backends.oauth.token_access import TokenSource
from emceepee.backends.spec import BackendSpec
from emceepee.backends.tasks.own_tasks import PROGRESS, OwnTasks, named_task
from emceepee.backends.tasks.task_messages import STATUS_CHANGED
from emceepee.lifecycle import CLOSE_LINK_SECONDS, TaskOwner, close_bounded
from emceepee.state.connection.connection_state import LinkEnd
from emceepee.wire.json_rpc import SERVER_ERROR
from emceepee.wire.json_types import JsonObject

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
SUBSCRIBE, UNSUBSCRIBE, SET_LEVEL = "resources/subscribe", "resources/unsubscribe", "logging/setLevel"
UPDATED, LOGGED = "notifications/resources/updated", "notifications/message"
Open = Callable[[Listener, TokenSource], Awaitable[Link]]


class SharedLinks:
    """The shared links of an installation, by principal and server."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], SharedLink] = {}

    async def join(
        self,
        spec: BackendSpec,
        principal: str,
        listener: Listener,
        open_link: Open,
        access: TokenSource | None = None,
        tasks: OwnTasks | None = None,
    ) -> Link:
        """Return a view of the existing link, or of a new one. `tasks` are the session's tasks at the server.

        Raises:
            RpcError, LinkError
        """
        while True:
            shared = self._find(spec, principal, open_link)
            is_first = not shared.is_used
            try:
                return await self._open_view(shared, LinkView(shared, listener, access, tasks))
            except NoAccess as error:
                # A different session was asked to log in. This session must begin its own login.
                if is_first or not error.wants_person:
                    raise

    def _find(self, spec: BackendSpec, principal: str, open_link: Open) -> "SharedLink":
        key = (principal, spec.name)
        shared = self._known.get(key)
        if shared is None or shared.is_retired or shared.spec != spec:
            shared = self._known[key] = SharedLink(spec, open_link, lambda gone: self._forget(key, gone))
        return shared

    async def _open_view(self, shared: "SharedLink", view: LinkView) -> Link:
        try:
            await shared.join(view)
        except BaseException:
            await close_bounded(view.close(), within=CLOSE_LINK_SECONDS, what="a link that could not be shared")
            raise
        return view

    def _forget(self, key: tuple[str, str], gone: "SharedLink") -> None:
        if self._known.get(key) is gone:
            del self._known[key]


class SharedLink:
    """The shared link and its users. As the link's `Listener`, it routes messages to the users' sessions."""

    def __init__(self, spec: BackendSpec, open_link: Open, on_over: "Callable[[SharedLink], None]") -> None:
        self.spec, self._open_link, self._on_over = spec, open_link, on_over
        self._tasks = TaskOwner(f"shared:{spec.name}")
        self._views: dict[LinkView, None] = {}
        self._access = SharedAccess(self._views)
        self._opening: asyncio.Task[Exception | None] | None = None
        self._changing = asyncio.Lock()  # serializes requests that are sent on behalf of all users
        self._level: str | None = None  # as last sent to the server
        self._link: Link | None = None
        self.is_retired = False

    def __repr__(self) -> str:
        return f"<SharedLink {self.spec.name} views={len(self._views)}{' over' if self.is_retired else ''}>"

    # Users

    @property
    def is_used(self) -> bool:
        return bool(self._views)

    @property
    def live(self) -> Link:
        if self._link is None:
            raise LinkError(LinkFailure.CLOSED, "the connection was lost", may_have_run=False)
        return self._link

    async def join(self, view: LinkView) -> None:
        """Raises: RpcError, LinkError."""
        self._views[view] = None
        if self._opening is None:
            self._opening = self._tasks.spawn(self._open(view.access), name="open")
        failure = await asyncio.shield(self._opening)
        if failure is not None:
            raise failure
        view.facts = self.live.facts
        if self.is_retired:
            raise LinkError(LinkFailure.CLOSED, "the connection was lost", may_have_run=False)

    async def _open(self, access: TokenSource | None) -> Exception | None:
        """Open the link. Return the error if that fails."""
        CURRENT_SOURCE.set(access)
        try:
            link = self._link = await self._open_link(self, self._access)
        except (RpcError, LinkError) as error:
            self._retire()
            return error
        link.closed.add_done_callback(lambda closed: self._end_views(closed.result()))
        return None

    async def leave(self, view: LinkView) -> None:
        """Remove a user. The last one to leave closes the link."""
        if view not in self._views:
            return
        del self._views[view]
        if self._views:
            if not self.is_retired and (view.uris or view.level):
                self._tasks.spawn(self._undo_settings(view.uris), name="let go")
            return
        self._access.last_source = view.access
        self._retire()
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait({self._opening})
        if self._link is not None:
            await self._link.close()
        await self._tasks.close(within=CLOSE_LINK_SECONDS)

    def replace(self, end: LinkEnd) -> None:
        self._retire()
        if self._link is not None:
            self._link.end(end)

    def _end_views(self, end: LinkEnd) -> None:
        self._retire()
        for view in list(self._views):
            view.end(end)

    def _retire(self) -> None:
        """Retire this link: new users get another one."""
        self.is_retired = True
        self._on_over(self)

    # Requests on behalf of all users.

    async def ask(self, view: LinkView, method: str, params: JsonObject) -> JsonObject | None:
        if method not in (SUBSCRIBE, UNSUBSCRIBE, SET_LEVEL):
            return None
        async with self._changing:
            if method == SET_LEVEL:
                view.level = str(params.get("level"))
                await self._send_level()
                return {}
            uri = str(params.get("uri"))
            is_needed = self._is_followed(uri)
            if method == UNSUBSCRIBE:
                view.uris.discard(uri)
                is_needed = not self._is_followed(uri)
                return await self.live.request(method, params) if is_needed else {}
            answer = {} if is_needed else await self.live.request(method, params)
            view.uris.add(uri)
            return answer

    async def _undo_settings(self, uris: set[str]) -> None:
        """Undo the settings of a session that has left, unless others need them."""
        with suppress(RpcError, LinkError):
            async with self._changing:
                await self._send_level()
                for uri in uris:
                    if not self._is_followed(uri):
                        await self.live.request(UNSUBSCRIBE, {"uri": uri})

    def _is_followed(self, uri: str) -> bool:
        return any(uri in view.uris for view in self._views)

    def change_level(self) -> None:
        """Send the lowest level of all users with each request, as 2026-07-28 requires."""
        if (level := self._lowest()) is not None:
            self.live.set_log_level(level)

    async def _send_level(self) -> None:
        level = self._lowest()
        if level is None or level == self._level:
            return
        if self.live.facts.is_modern:
            self.live.set_log_level(level)
        else:
            await self.live.request(SET_LEVEL, {"level": level})
        self._level = level

    def _lowest(self) -> str | None:
        return min((view.level for view in self._views if view.level), key=_rank, default=None)

    # Messages from the server.

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        whose = origin if isinstance(origin, CallOrigin) else None
        view = self._addressee(method, params, whose)
        if view is None and method == "roots/list":
            view = next(iter(self._views), None)  # roots come from the operator and are the same for all sessions
        if view is None:
            words = (
                f"Nobody was asked: {len(self._views)} sessions share this server, and emceepee cannot know which of "
                f"them {method} is for. Ask while a call of only one session runs."
            )
            raise RpcError({"code": SERVER_ERROR, "message": words})
        return await view.listener.handle_request(method, params, _call_of(whose, view), seconds=seconds)

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        whose = origin if isinstance(origin, CallOrigin) else None
        for view in self._recipients(method, params, whose):
            view.listener.handle_notification(method, params, _call_of(whose, view))

    def _recipients(self, method: str, params: JsonObject, origin: CallOrigin | None) -> list[LinkView]:
        # Before 2026-07-28, a change may be reported on the stream of any session's call.
        if origin is None or not self.live.facts.is_modern:
            if method.endswith("/list_changed"):
                return list(self._views)
            if method == UPDATED:
                return [view for view in self._views if _is_followed_by(view, str(params.get("uri")))]
            if method == STATUS_CHANGED:
                origin = None
        view = self._addressee(method, params, origin)
        if method == LOGGED:
            rank = _rank(str(params.get("level")))
            hearing = list(self._views) if view is None else [view]
            return [each for each in hearing if each.level is None or _rank(each.level) <= rank]
        return [] if view is None else [view]  # anything else would leak one session's data to another

    def _addressee(self, method: str, params: JsonObject, origin: CallOrigin | None) -> LinkView | None:
        """Return the session whose task or call a message names.

        If the message names neither, return the only session with a call in flight.
        """
        owner = next((view for view in self._views if view.tasks.are_meant(method, params)), None)
        if owner is not None:
            return owner
        if origin is not None:
            return origin.view
        is_someones = method == PROGRESS or named_task(method, params) is not None
        return None if is_someones else self._only_caller()

    def handle_output(self, line: str, source: str) -> None:
        for view in list(self._views):
            view.listener.handle_output(line, source)

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        taken = (view.listener.take_request(key, method, params) for view in list(self._views))
        return next((task for task in taken if task is not None), None)

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        if isinstance(origin, CallOrigin):
            origin.view.listener.handle_task(task, origin.call)

    def _only_caller(self) -> LinkView | None:
        """Return the session with a call in flight, or None unless there is exactly one."""
        calling = [view for view in self._views if view.calls]
        return calling[0] if len(calling) == 1 else None


def _call_of(origin: CallOrigin | None, view: LinkView) -> object | None:
    return origin.call if origin is not None and origin.view is view else None


def _is_followed_by(view: LinkView, uri: str) -> bool:
    """Return whether a view subscribed to `uri`.

    The protocol allows a server to name a part of the subscribed resource.
    """
    return any(_is_part_of(uri, followed) for followed in view.uris)


def _is_part_of(uri: str, whole: str) -> bool:
    rest = uri[len(whole) :] if uri.startswith(whole) else None
    return rest is not None and (not rest or whole.endswith("/") or rest[0] in "/?#")


def _rank(level: str) -> int:
    return LEVELS.index(level) if level in LEVELS else len(LEVELS)
