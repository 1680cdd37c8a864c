"""Isolation of observers: a failure in an observer is our defect. It is logged and does not affect the request."""

from types import TracebackType

from emceepee.telemetry.logs import EventLog

log = EventLog("requests")


class ObserverGuard:
    """`with ObserverGuard(observer): …`"""

    __slots__ = ("_observer",)

    def __init__(self, observer: object) -> None:
        self._observer = observer

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        log.error("request_not_observed", observer=type(self._observer).__name__, error=repr(error))
        return True
