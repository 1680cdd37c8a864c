"""The lists that a backend offers. They survive a reconnect, and differences between links are reported as changes."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from emceepee.backends.catalog import Catalog, ListKind
from emceepee.backends.link import Link, LinkError, LinkFailure, RpcError
from emceepee.backends.links.subscriptions import Notify, Subscriptions
from emceepee.clock import Clock
from emceepee.lifecycle import TaskOwner
from emceepee.state.tool_filter import ToolFilter
from emceepee.wire.json_types import JsonObject

Entries: TypeAlias = list[JsonObject]
RunBounded = Callable[[Callable[[Link], Awaitable[Entries]], str], Awaitable[Entries]]


class BackendLists:
    """The lists of one connection, across all its links."""

    def __init__(
        self,
        permitted: ToolFilter,
        run_bounded: RunBounded,
        subscriptions: Subscriptions,
        notify: Notify,
        *,
        tasks: TaskOwner,
        clock: Clock,
    ) -> None:
        """`notify` is called with each change notification that the backend could not send while disconnected."""
        self._permitted, self._run_bounded = permitted, run_bounded
        self._subscriptions, self._notify = subscriptions, notify
        self._tasks, self._clock = tasks, clock
        self._last_seen: dict[ListKind, Entries] = {}  # from earlier links, not yet compared
        self.catalog: Catalog | None = None  # of the newest link

    def known_tools(self) -> Entries | None:
        """Return the permitted tools, or None if the list is not cached."""
        tools = self.catalog.known(ListKind.TOOLS) if self.catalog else None
        return None if tools is None else self._filter(tools)

    async def entries(self, kind: ListKind) -> Entries:
        """Return all entries of one kind. Tools are limited to the permitted ones.

        Raises:
            EmceepeeError
        """

        async def read(_: Link) -> Entries:
            if self.catalog is None:
                raise LinkError(LinkFailure.CLOSED, "the connection was lost", may_have_run=False)
            self._subscriptions.listen_for_changes()
            return await self.catalog.entries(kind)

        items = await self._run_bounded(read, kind.method)
        return self._filter(items) if kind is ListKind.TOOLS else items

    def _filter(self, tools: Entries) -> Entries:
        permitted = self._permitted
        return tools if permitted.permits_all else [tool for tool in tools if permitted.permits(str(tool.get("name")))]

    # Link lifecycle.

    def attach(self, link: Link) -> None:
        """Read lists from this link from now on, and fetch them again."""
        if self.catalog is not None:
            self._last_seen |= {kind: items for kind in ListKind if (items := self.catalog.known(kind)) is not None}
        self.catalog = Catalog(
            link,
            self._clock,
            tasks=self._tasks,
            receives_changes=self._subscriptions.receives_changes,
        )

    def compare_soon(self) -> None:
        """Compare the lists in the background, and report the changes that were missed while disconnected."""
        if self._last_seen and self.catalog is not None:
            self._tasks.spawn(self._compare(self.catalog), name="compare")

    async def _compare(self, now: Catalog) -> None:
        changed: set[str] = set()
        for kind, known in list(self._last_seen.items()):
            try:
                if await now.entries(kind) != known:
                    changed.add(kind.changed)
            except (RpcError, LinkError):
                break  # the link is lost again; the next comparison reports the changes
            self._last_seen.pop(kind, None)
        for method in sorted(changed):
            self._notify(method, {})
