"""Who observes what a process does, besides its own journals."""

from dataclasses import dataclass

from emceepee.telemetry.journal import SpanObserver
from emceepee.telemetry.outgoing import LinkObserver


@dataclass(frozen=True, slots=True)
class Observers:
    """`requests` are told of those of callers, `links` of those to servers."""

    requests: tuple[SpanObserver, ...] = ()
    links: LinkObserver | None = None


NO_OBSERVERS = Observers()
