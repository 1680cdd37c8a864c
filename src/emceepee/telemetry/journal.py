"""The stored requests of a session for the console, and the budget that all sessions share for them."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from emceepee.clock import Clock
from emceepee.ids import Ulids
from emceepee.telemetry.link_observer import LinkObserver
from emceepee.telemetry.observer_guard import ObserverGuard
from emceepee.telemetry.spans import Span, SpanKind, SpanWatch
from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class SpanOwner:
    """The session and principal of a journal's requests."""

    session_id: str
    principal: str
    since: float = 0.0  # on the monotonic clock


class RequestOrigin(Protocol):
    """How a request arrived."""

    @property
    def request(self) -> Request: ...

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        """The HTTP headers; None if it did not arrive by HTTP."""
        ...

    @property
    def protocol_version(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class BegunRequest:
    """A request as observers see it when it begins. `arguments` are complete except for private values."""

    span: Span
    owner: SpanOwner
    arguments: JsonObject = field(repr=False)
    origin: RequestOrigin | None = None  # None: the request has no caller
    parent: Span | None = None  # the request that it belongs to


class SpanObserver(ABC):
    """Receives every request of the process."""

    __slots__ = ()

    @abstractmethod
    def begin(self, begun: BegunRequest) -> SpanWatch: ...

    def session_ended(self, owner: SpanOwner, seconds: float) -> None:  # noqa: B027  # not all want to know of it
        """Record that a session ended after `seconds` in this process."""


@dataclass(frozen=True, slots=True)
class Observers:
    """`requests` receive callers' requests, `links` receives requests to servers."""

    requests: tuple[SpanObserver, ...] = ()
    links: LinkObserver | None = None


NO_OBSERVERS = Observers()
NO_OWNER = SpanOwner("", "")


class SpanBudget:
    """The limit of stored requests in all sessions; beyond it the oldest is dropped. It also has the observers."""

    def __init__(self, most: int, observers: tuple[SpanObserver, ...] = ()) -> None:
        self._most, self.observers = most, observers
        self._spans: OrderedDict[Span, Journal] = OrderedDict()

    def __len__(self) -> int:
        return len(self._spans)

    def watches(self, begun: BegunRequest) -> tuple[SpanWatch, ...]:
        found: list[SpanWatch] = []
        for observer in self.observers:
            with ObserverGuard(observer):
                found.append(observer.begin(begun))
        return tuple(found)

    def take(self, span: Span, journal: "Journal") -> None:
        self._spans[span] = journal
        if len(self._spans) > self._most:
            _, owner = self._spans.popitem(last=False)
            owner.oldest_went()

    def give_back(self, span: Span) -> None:
        self._spans.pop(span, None)


class _Revisions:
    """Counts changes. A span references only this object, not its journal.

    A timer or pooled connection that a request created retains the request's context, and with it the span, long after
    the session has ended.
    """

    __slots__ = ("newest", "notify")

    def __init__(self, notify: Callable[[], None]) -> None:
        self.notify, self.newest = notify, 0

    def touch(self, span: Span) -> None:
        self.newest += 1
        span.revision = self.newest
        self.notify()


def _nobody() -> None:
    """Notify nobody."""


class Journal:
    """One session's requests, oldest first. `changed` is called on every change to one of them."""

    def __init__(
        self,
        room: SpanBudget,
        clock: Clock,
        ids: Ulids,
        *,
        most: int,
        changed: Callable[[], None],
        owner: SpanOwner = NO_OWNER,
    ) -> None:
        """Create a journal. `owner` is for observers; without observers it may be unknown."""
        self._owner = owner
        self._room, self._clock, self._ids, self._most = room, clock, ids, most
        self._revisions = _Revisions(changed)
        self._spans: list[Span] = []  # a list, because an empty deque takes more memory than the rest of the journal
        self.begun = 0  # total number, stored or not

    @property
    def revision(self) -> int:
        return self._revisions.newest

    def __len__(self) -> int:
        return len(self._spans)

    @property
    def spans(self) -> list[Span]:
        return list(self._spans)

    def begin(
        self,
        kind: SpanKind,
        name: str,
        server: str | None,
        arguments: JsonObject,
        parent: Span | None = None,
        origin: RequestOrigin | None = None,
    ) -> Span:
        clock, touch = self._clock, self._revisions.touch
        span = Span(kind, name, server, arguments, at=clock.now(), monotonic=clock.monotonic, touched=touch)
        if parent is not None:
            span.parent = self._named(parent).span_id
        if self._room.observers:
            span.watches = self._room.watches(BegunRequest(span, self._owner, arguments, origin, parent))
        if not self._most:
            return span
        self.begun += 1
        span.number = self.begun
        self._spans.append(span)
        if len(self._spans) > self._most:
            self._room.give_back(self._spans.pop(0))
        self._room.take(span, self)
        touch(span)
        return span

    def unkept(self, owner: SpanOwner | None = None) -> "Journal | None":
        """Return a journal for requests that only observers see; None without observers. `owner` replaces its own."""
        room = self._room
        if not room.observers:
            return None
        return Journal(room, self._clock, self._ids, most=0, changed=_nobody, owner=owner or self._owner)

    def since(self, revision: int) -> list[Span]:
        """Return the spans that changed after this revision, oldest first."""
        return [self._named(span) for span in self._spans if span.revision > revision]

    def find(self, span_id: str) -> Span | None:
        return next((span for span in self._spans if span.span_id == span_id), None)

    def close(self) -> None:
        for span in self._spans:
            self._room.give_back(span)
        self._spans.clear()
        self._revisions.notify = _nobody
        for observer in self._room.observers:
            with ObserverGuard(observer):
                observer.session_ended(self._owner, self._clock.monotonic() - self._owner.since)

    def oldest_went(self) -> None:
        """Drop the oldest request, because the budget removed it: the oldest request overall is the oldest here."""
        self._spans.pop(0)

    def _named(self, span: Span) -> Span:
        """Set the span's id on first use: an id costs time, and most requests are never viewed."""
        if not span.span_id:
            span.span_id = self._ids.new()
        return span


def unowned_journal(room: SpanBudget, clock: Clock, ids: Ulids) -> Journal | None:
    """Return a journal for requests without a session; None without observers, because nobody else could see it."""
    return Journal(room, clock, ids, most=0, changed=_nobody) if room.observers else None
