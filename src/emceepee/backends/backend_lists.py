"""What a backend offers, whichever link it is asked on: the lists of the newest one, and what changed between links."""

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from emceepee.backends.catalog import Catalog, Kind
from emceepee.backends.link import Failure, Link, LinkError, RpcError
from emceepee.backends.links.subscriptions import Notify, Subscriptions
from emceepee.clock import Clock
from emceepee.lifecycle import TaskOwner
from emceepee.state.limits import Limits
from emceepee.state.tool_filter import ToolFilter
from emceepee.wire.json_types import JsonObject

Entries: TypeAlias = list[JsonObject]
RunBounded = Callable[[Callable[[Link], Awaitable[Entries]], str], Awaitable[Entries]]


class BackendLists:
    """One per connection, for all its links."""

    def __init__(
        self,
        permitted: ToolFilter,
        run_bounded: RunBounded,
        subscriptions: Subscriptions,
        notify: Notify,
        *,
        tasks: TaskOwner,
        clock: Clock,
        limits: Limits,
    ) -> None:
        """`notify` takes what the backend would have said, had it been connected."""
        self._permitted, self._run_bounded = permitted, run_bounded
        self._subscriptions, self._notify = subscriptions, notify
        self._tasks, self._clock, self._limits = tasks, clock, limits
        self._last_seen: dict[Kind, Entries] = {}  # on links before, and not yet compared
        self.catalog: Catalog | None = None  # of the newest link

    def known_tools(self) -> Entries | None:
        """The permitted tools, if the list is at hand."""
        tools = self.catalog.known(Kind.TOOLS) if self.catalog else None
        return None if tools is None else self._filter(tools)

    async def entries(self, kind: Kind) -> Entries:
        """All entries of one kind; of tools, the permitted ones.

        Raises:
            EmceepeeError
        """

        async def read(_: Link) -> Entries:
            if self.catalog is None:
                raise LinkError(Failure.CLOSED, "the connection was lost", may_have_run=False)
            self._subscriptions.listen_for_changes()
            return await self.catalog.entries(kind)

        items = await self._run_bounded(read, kind.method)
        return self._filter(items) if kind is Kind.TOOLS else items

    def _filter(self, tools: Entries) -> Entries:
        permitted = self._permitted
        return tools if permitted.permits_all else [tool for tool in tools if permitted.permits(str(tool.get("name")))]

    # The life of links.

    def attach(self, link: Link) -> None:
        """From now on lists are asked for on this one, and anew."""
        if self.catalog is not None:
            self._last_seen |= {kind: items for kind in Kind if (items := self.catalog.known(kind)) is not None}
        self.catalog = Catalog(
            link,
            self._clock,
            tasks=self._tasks,
            limits=self._limits,
            is_told_of_changes=self._subscriptions.is_told_of_changes,
        )

    def compare_soon(self) -> None:
        """Lists that the backend changed while it was away raise the notification that it could not send."""
        if self._last_seen and self.catalog is not None:
            self._tasks.spawn(self._compare(self.catalog), name="compare")

    async def _compare(self, now: Catalog) -> None:
        changed: set[str] = set()
        for kind, known in list(self._last_seen.items()):
            try:
                if await now.entries(kind) != known:
                    changed.add(kind.changed)
            except (RpcError, LinkError):
                break  # gone again; the next comparison will tell
            self._last_seen.pop(kind, None)
        for method in sorted(changed):
            self._notify(method, {})
