"""The observers of a process, besides its own journals."""

from dataclasses import dataclass

from emceepee.telemetry.journal import SpanObserver
from emceepee.telemetry.link_observer import LinkObserver


@dataclass(frozen=True, slots=True)
class Observers:
    """`requests` receive callers' requests, `links` receives requests to servers."""

    requests: tuple[SpanObserver, ...] = ()
    links: LinkObserver | None = None


NO_OBSERVERS = Observers()
