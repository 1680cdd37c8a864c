"""Subscriptions to a backend's changes, in the style of its era. They are renewed on every new link."""

import asyncio
from collections.abc import Callable

from emceepee.backends.link import Link, LinkError, LinkFailure, RpcError
from emceepee.backends.links.reopen_backoff import CHANGES, ReopenBackoff
from emceepee.clock import Clock, give_up_after
from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments
from emceepee.lifecycle import TaskOwner
from emceepee.state.connection.connection_state import LinkEnd, LinkEndKind
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import SUBSCRIPTION_ID_META_KEY

log = EventLog("backends")

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
ACKNOWLEDGE_SECONDS = 10.0
LONGEST_URI = 8192
SUBSCRIPTIONS_PER_SERVER = 100
Notify = Callable[[str, JsonObject], None]
_LIST_FLAGS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}


class _Listen:
    """One `subscriptions/listen` request, which stays open while it is needed."""

    def __init__(self, filters: JsonObject) -> None:
        self.filters = filters
        self.acknowledged: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[None] | None = None

    def settle(self, error: Exception | None = None) -> None:
        if not self.acknowledged.done():
            if error is None:
                self.acknowledged.set_result(None)
            else:
                self.acknowledged.set_exception(error)
                self.acknowledged.exception()  # mark as retrieved: nobody may be waiting

    def end(self) -> None:
        if self.task is not None:
            self.task.cancel()


class Subscriptions:
    """Subscribes each link to the required changes, and restores the subscriptions on the next link.

    In the handshake era, each resource has its own subscription. In 2026-07-28, one open request names everything. To
    change it, a new request is opened before the old one is closed.
    """

    def __init__(self, notify: Notify, tasks: TaskOwner, clock: Clock) -> None:
        """`notify` is called for changes that the backend may not have reported."""
        self._notify, self._tasks, self._clock = notify, tasks, clock
        self._link: Link | None = None
        self._listen: _Listen | None = None
        self._opening: _Listen | None = None
        self._changing = asyncio.Lock()
        self._backoff = ReopenBackoff(clock, CHANGES)
        self._wants_lists = False
        self.uris: set[str] = set()

    def receives_changes(self, capability: str) -> bool:
        """Return whether a 2026-07-28 backend currently reports changes to the lists of a capability."""
        flag = _LIST_FLAGS.get(capability)
        return self._listen is not None and flag is not None and bool(self._listen.filters.get(flag))

    # Link lifecycle.

    def attach(self, link: Link) -> None:
        self._link = link

    def detach(self) -> None:
        self._link = None
        for listen in (self._listen, self._opening):
            if listen is not None:
                listen.settle(LinkError(LinkFailure.CLOSED, "the connection was lost"))
                listen.end()
        self._listen = self._opening = None

    async def restore(self) -> None:
        """Restore all subscriptions on a new link. Raises: RpcError, LinkError."""
        link = self._link
        if link is None or not (self.uris or self._wants_lists):
            return
        if link.facts.is_modern:
            try:
                await self._renew(link)
            except (RpcError, LinkError):
                self._tasks.spawn(self._reopen(link), name="listen")
                raise
        else:
            for uri in sorted(self.uris):
                try:
                    await link.request("resources/subscribe", {"uri": uri})
                except RpcError as error:  # one missing resource must not prevent the other subscriptions
                    log.warning("subscription_refused", uri=uri, error=str(error))

    # Wanted changes.

    async def add(self, uri: str) -> None:
        """Raises: RpcError, LinkError, EmceepeeError; then nothing has changed."""
        link = self._live_link()
        if uri in self.uris:
            return
        if len(uri) > LONGEST_URI:
            raise InvalidArguments(f"uri: may have at most {LONGEST_URI} characters.")
        if len(self.uris) >= SUBSCRIPTIONS_PER_SERVER:
            words = f"{SUBSCRIPTIONS_PER_SERVER} resources of this server are followed already, which is the limit."
            raise EmceepeeError(
                f"{words} Unsubscribe from one with {call_to('unsubscribe_resource')}.", code=ErrorCode.LIMIT_EXCEEDED
            )
        self.uris.add(uri)
        try:
            if link.facts.is_modern:
                await self._renew(link)
            else:
                await link.request("resources/subscribe", {"uri": uri})
        except BaseException:
            self.uris.discard(uri)
            raise

    async def remove(self, uri: str) -> None:
        """Raises: RpcError, LinkError."""
        link = self._live_link()
        if uri not in self.uris:
            return
        self.uris.discard(uri)
        if link.facts.is_modern:
            await self._renew(link)
        else:
            await link.request("resources/unsubscribe", {"uri": uri})

    def _live_link(self) -> Link:
        if self._link is None:
            raise LinkError(LinkFailure.CLOSED, "the connection was lost", may_have_run=False)
        return self._link

    def listen_for_changes(self) -> None:
        """Ask a 2026-07-28 backend, in the background, to report list changes. Call this when lists are read."""
        link = self._link
        if self._wants_lists or link is None or not link.facts.is_modern or not _list_flags(link):
            return
        self._wants_lists = True
        self._tasks.spawn(self._renew_or_log(link), name="listen")

    async def _renew_or_log(self, link: Link) -> None:
        try:
            await self._renew(link)
        except (RpcError, LinkError) as error:
            self._wants_lists = False
            log.debug("listen_refused", error=str(error))

    async def _renew(self, link: Link) -> JsonObject:
        """Open a listen request for all current subscriptions, then close the old one. Return its filters.

        Raises: RpcError, LinkError.
        """
        async with self._changing:
            filters: JsonObject = dict(_list_flags(link)) if self._wants_lists else {}
            if self.uris:
                filters["resourceSubscriptions"] = sorted(self.uris)
            old, fresh = self._listen, None
            if filters:
                fresh = self._opening = _Listen(filters)
                fresh.task = self._tasks.spawn(self._hold(link, fresh), name="listen")
                try:
                    async with give_up_after(self._clock, ACKNOWLEDGE_SECONDS):
                        await asyncio.shield(fresh.acknowledged)
                except BaseException as error:
                    fresh.end()  # otherwise both requests would deliver each change
                    if not isinstance(error, TimeoutError):
                        raise
                    words = f"subscriptions/listen was not acknowledged within {ACKNOWLEDGE_SECONDS:g} s"
                    raise LinkError(LinkFailure.PROTOCOL, words) from None
                finally:
                    self._opening = None
            self._listen = fresh
            if old is not None:
                old.end()
            if fresh is not None:
                self._backoff.mark_opened()
                if fresh.task is not None and fresh.task.done():  # it ended right after the acknowledgment
                    self._schedule_reopen(link)
            return filters

    async def _hold(self, link: Link, listen: _Listen) -> None:
        try:
            await link.request("subscriptions/listen", {"notifications": listen.filters}, origin=listen)
            error: Exception | None = None  # a regular end, perhaps without an acknowledgment
        except (RpcError, LinkError) as failure:
            error = failure
        listen.settle(error)
        if self._listen is listen and link is self._link:
            self._schedule_reopen(link)

    def _schedule_reopen(self, link: Link) -> None:
        self._listen = None
        self._tasks.spawn(self._reopen(link), name="listen")

    async def _reopen(self, link: Link) -> None:
        """Reopen an ended stream, and report that anything may have changed in between. Stop if the link is lost."""
        while True:
            await self._clock.sleep(self._backoff.next_pause())
            if link is not self._link or link.closed.done() or self._listen is not None:
                return
            try:
                filters = await self._renew(link)
            except LinkError as error:
                if not error.may_have_run:
                    link.end(LinkEnd(LinkEndKind.LOST, str(error)))
            except RpcError as error:
                log.debug("listen_refused", error=str(error))
                self._wants_lists = False
                return
            else:
                self._notify_of_possible_changes(filters)
                return

    def _notify_of_possible_changes(self, filters: JsonObject) -> None:
        for key, flag in _LIST_FLAGS.items():
            if filters.get(flag):
                self._notify(f"notifications/{key}/list_changed", {})
        for uri in filters.get("resourceSubscriptions", []):
            self._notify("notifications/resources/updated", {"uri": uri})

    def acknowledge(self) -> None:
        """Record the acknowledgment of the request that is being opened."""
        if self._opening is not None:
            self._opening.settle()


def _list_flags(link: Link) -> dict[str, bool]:
    """Return the flags of the lists whose changes the backend can report."""
    capabilities = link.facts.capabilities
    return {
        flag: True
        for key, flag in _LIST_FLAGS.items()
        if isinstance(capabilities.get(key), dict) and capabilities[key].get("listChanged")
    }


def without_subscription(params: JsonObject) -> JsonObject:
    """Return the params without the subscription id, which has no meaning outside the link."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or SUBSCRIPTION_ID_META_KEY not in meta:
        return params
    rest = {key: value for key, value in meta.items() if key != SUBSCRIPTION_ID_META_KEY}
    return {key: value for key, value in params.items() if key != "_meta"} | ({"_meta": rest} if rest else {})
