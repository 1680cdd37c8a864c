"""The tools, resources, templates, and prompts of a backend, all pages, cached until the backend reports changes."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any

from emceepee.backends.link import Link, LinkError, LinkFailure, RpcError
from emceepee.backends.param_headers import MARK, HeaderMap, header_map, param_headers
from emceepee.clock import Clock
from emceepee.futures import let_others_run, reject
from emceepee.lifecycle import TaskOwner
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import METHOD_NOT_FOUND

# Limits per list. They stop a backend that returns endless pages.
LIST_PAGES, LIST_ENTRIES, LIST_BYTES = 1000, 50_000, 16 << 20


class ListKind(Enum):
    """A list that a backend offers: its method, the result's key, the capability, the change notification."""

    TOOLS = ("tools/list", "tools", "tools", "notifications/tools/list_changed")
    RESOURCES = ("resources/list", "resources", "resources", "notifications/resources/list_changed")
    TEMPLATES = ("resources/templates/list", "resourceTemplates", "resources", "notifications/resources/list_changed")
    PROMPTS = ("prompts/list", "prompts", "prompts", "notifications/prompts/list_changed")

    def __init__(self, method: str, key: str, capability: str, changed: str) -> None:
        self.method, self.key, self.capability, self.changed = method, key, capability, changed


@dataclass(slots=True)
class _Listing:
    items: list[JsonObject]
    good_until: float | None  # on the monotonic clock; None: until the backend reports a change
    header_maps: Mapping[str, HeaderMap] = field(default_factory=dict)  # of tools with mirrored arguments


class Catalog:
    """The lists of one link. Concurrent callers share one request."""

    def __init__(
        self,
        link: Link,
        clock: Clock,
        *,
        tasks: TaskOwner,
        receives_changes: Callable[[str], bool] = lambda _: False,
    ) -> None:
        """`receives_changes` returns whether a 2026-07-28 backend currently reports changes for a capability."""
        self._link, self._clock, self._tasks = link, clock, tasks
        self._is_told_of_changes = receives_changes
        self._listings: dict[ListKind, _Listing] = {}
        self._fetches: dict[ListKind, asyncio.Future[_Listing]] = {}

    def known(self, kind: ListKind) -> list[JsonObject] | None:
        """Return the cached entries without asking the backend, or None."""
        kept = self._listings.get(kind)
        return kept.items if kept else None

    async def entries(self, kind: ListKind) -> list[JsonObject]:
        """Return every entry, as the backend sent it.

        Raises:
            RpcError, LinkError
        """
        kept = self._listings.get(kind)
        return kept.items if kept is not None and self._is_good(kind, kept) else (await self._listing(kind)).items

    async def _listing(self, kind: ListKind) -> _Listing:
        """Fetch the list, or join a fetch in progress. Raises: RpcError, LinkError."""
        coming = self._fetches.get(kind)
        if coming is None:
            coming = self._fetches[kind] = asyncio.get_running_loop().create_future()
            fetching = self._tasks.spawn(self._fetch(kind, coming), name=kind.method)
            fetching.add_done_callback(partial(_give_up, coming))
        try:
            return await asyncio.shield(coming)
        finally:
            del coming  # breaks a reference cycle: its error's traceback holds this frame

    def invalidate(self, method: str) -> None:
        """Drop the lists that a change notification names. A fetch in progress is discarded instead of cached."""
        for kind in ListKind:
            if kind.changed == method:
                self._listings.pop(kind, None)
                self._fetches.pop(kind, None)

    async def param_headers(self, tool: str, arguments: JsonObject) -> dict[str, str]:
        """Return the headers that repeat some of a tool's arguments for a 2026-07-28 HTTP backend."""
        listing = self._listings.get(ListKind.TOOLS) or await self._listing(ListKind.TOOLS)
        header_map = listing.header_maps.get(tool)
        return param_headers(header_map, arguments) if header_map else {}

    async def _fetch(self, kind: ListKind, coming: "asyncio.Future[_Listing]") -> None:
        """Fetch the list in a separate task, so that one cancelled caller does not affect the others."""
        try:
            listing = await self._all_pages(kind)
        except (RpcError, LinkError) as error:
            coming.set_exception(error.with_traceback(None))  # its traceback's frames hold the whole list
            coming.exception()  # mark as retrieved: all callers may have left
        except asyncio.CancelledError:
            coming.set_exception(LinkError(LinkFailure.CLOSED, "the connection was closed"))
            coming.exception()
            raise
        else:
            coming.set_result(listing)
            if self._fetches.get(kind) is coming:
                self._listings[kind] = listing
        finally:
            if self._fetches.get(kind) is coming:
                del self._fetches[kind]

    def _is_good(self, kind: ListKind, listing: _Listing) -> bool:
        """Return whether a cached list is current.

        A handshake-era backend pushes change notifications. A modern backend states how long its answer is valid.
        """
        if listing.good_until is not None:
            return self._clock.monotonic() < listing.good_until
        return not self._link.facts.is_modern or self._is_told_of_changes(kind.capability)

    async def _all_pages(self, kind: ListKind) -> _Listing:
        items: list[JsonObject] = []
        size, is_marked = 0, False
        good_until: float | None = None
        cursor: Any = None
        if kind.capability not in self._link.facts.capabilities:
            return _Listing(items, None)
        for _ in range(LIST_PAGES):
            try:
                page = await self._link.request(kind.method, {} if cursor is None else {"cursor": cursor})
            except RpcError as error:
                if error.code == METHOD_NOT_FOUND and cursor is None:
                    break  # the capability covers several lists, and the backend supports only some of them
                raise
            entries = page.get(kind.key)
            if not isinstance(entries, list):
                raise LinkError(LinkFailure.PROTOCOL, f"the answer to {kind.method} has no list of {kind.key}")
            data = encode(entries)
            size, is_marked = size + len(data), is_marked or MARK.encode() in data
            if size > LIST_BYTES or len(items) + len(entries) > LIST_ENTRIES:
                most = f"{LIST_ENTRIES} entries, or {LIST_BYTES} bytes"
                raise LinkError(LinkFailure.PROTOCOL, f"{kind.method} has more than {most}")
            items += [entry for entry in entries if isinstance(entry, dict)]
            ttl = page.get("ttlMs")
            if isinstance(ttl, int | float) and ttl > 0:
                ends = self._clock.monotonic() + ttl / 1000
                good_until = ends if good_until is None else min(good_until, ends)
            cursor = page.get("nextCursor")
            if cursor is None:
                break
        else:
            raise LinkError(LinkFailure.PROTOCOL, f"{kind.method} did not end after {LIST_PAGES} pages")
        if kind is ListKind.TOOLS and self._link.mirrors_arguments and is_marked:
            return await _with_header_maps(_Listing(items, good_until))
        return _Listing(items, good_until)


async def _with_header_maps(listing: _Listing) -> _Listing:
    """Return the tools that may be offered, with their header maps."""
    items, maps = list[JsonObject](), dict[str, HeaderMap]()
    for tool in listing.items:
        if (headers := header_map(tool.get("inputSchema"))) is not None:
            items.append(tool)
            maps[str(tool.get("name"))] = headers
        await let_others_run()  # a schema may be large
    return _Listing(items, listing.good_until, maps)


def _give_up(coming: "asyncio.Future[_Listing]", _: object) -> None:
    """Fail callers whose fetch was cancelled because the link closes, without cancelling the callers."""
    reject(coming, LinkError(LinkFailure.CLOSED, "the connection was closed"))
