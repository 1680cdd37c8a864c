"""The requests of a session that are kept to be looked at, and the room that all sessions share for them."""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from emceepee.clock import Clock
from emceepee.ids import Ulids
from emceepee.telemetry.observing import Guarded
from emceepee.telemetry.spans import Span, SpanKind, SpanWatch
from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class SpanOwner:
    """Whose requests those of a journal are."""

    session_id: str
    principal: str
    since: float = 0.0  # by the clock that never goes back


class RequestOrigin(Protocol):
    """How a request came."""

    @property
    def request(self) -> Request: ...

    @property
    def headers(self) -> Mapping[bytes, bytes] | None:
        """Those of HTTP; None if it did not come by HTTP."""
        ...

    @property
    def protocol_version(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class BegunRequest:
    """A request as observers see it when it begins. `arguments` are whole, but for what is private in them."""

    span: Span
    owner: SpanOwner
    arguments: JsonObject = field(repr=False)
    origin: RequestOrigin | None = None  # None: no caller sent it
    parent: Span | None = None  # the request that it is a part of


class SpanObserver(ABC):
    """Wants to know of every request of the process."""

    __slots__ = ()

    @abstractmethod
    def begin(self, begun: BegunRequest) -> SpanWatch: ...

    def session_ended(self, owner: SpanOwner, seconds: float) -> None:  # noqa: B027  # not all want to know of it
        """`seconds` is how long it was here."""


NO_OWNER = SpanOwner("", "")


class SpanBudget:
    """How many requests are kept in all; beyond it the oldest goes, whosever it is. And who observes all of them."""

    def __init__(self, most: int, observers: tuple[SpanObserver, ...] = ()) -> None:
        self._most, self.observers = most, observers
        self._spans: OrderedDict[Span, Journal] = OrderedDict()

    def __len__(self) -> int:
        return len(self._spans)

    def watches(self, begun: BegunRequest) -> tuple[SpanWatch, ...]:
        found: list[SpanWatch] = []
        for observer in self.observers:
            with Guarded(observer):
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
    """Counts changes. It is all that a span knows of its journal: a timer or a pooled connection that a request began
    keeps the request's context, and with it the span, long after the session has ended."""

    __slots__ = ("newest", "notify")

    def __init__(self, notify: Callable[[], None]) -> None:
        self.notify, self.newest = notify, 0

    def touch(self, span: Span) -> None:
        self.newest += 1
        span.revision = self.newest
        self.notify()


def _nobody() -> None:
    """Looks."""


class Journal:
    """One session's requests, oldest first. `changed` is called whenever one of them is different from before."""

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
        """`owner` is for observers; without any, it need not be known."""
        self._owner = owner
        self._room, self._clock, self._ids, self._most = room, clock, ids, most
        self._revisions = _Revisions(changed)
        self._spans: list[Span] = []  # not a deque: an empty one weighs more than the rest of the journal
        self.begun = 0  # how many there were in all, kept or not

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
        """For requests that nobody but observers is to see; None if there are none. `owner`: if it is another."""
        room = self._room
        if not room.observers:
            return None
        return Journal(room, self._clock, self._ids, most=0, changed=_nobody, owner=owner or self._owner)

    def since(self, revision: int) -> list[Span]:
        """Those that are different since then, in the order of their beginning."""
        return [self._named(span) for span in self._spans if span.revision > revision]

    def find(self, span_id: str) -> Span | None:
        return next((span for span in self._spans if span.span_id == span_id), None)

    def close(self) -> None:
        for span in self._spans:
            self._room.give_back(span)
        self._spans.clear()
        self._revisions.notify = _nobody
        for observer in self._room.observers:
            with Guarded(observer):
                observer.session_ended(self._owner, self._clock.monotonic() - self._owner.since)

    def oldest_went(self) -> None:
        """The room gave it up. What is oldest of all is the oldest here."""
        self._spans.pop(0)

    def _named(self, span: Span) -> Span:
        """An id costs something, and most requests are never looked at."""
        if not span.span_id:
            span.span_id = self._ids.new()
        return span


def unowned_journal(room: SpanBudget, clock: Clock, ids: Ulids) -> Journal | None:
    """For requests that belong to no session, if anyone observes them: nobody else could look at them."""
    return Journal(room, clock, ids, most=0, changed=_nobody) if room.observers else None
