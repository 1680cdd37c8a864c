"""A link whose requests are observed. Without an observer, links are not wrapped."""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from emceepee.backends.http1.origin import is_unix_url, place_of
from emceepee.backends.link import Link, LinkError, RpcError
from emceepee.backends.links.client_messages import NumberedParams
from emceepee.backends.links.link_view import LISTEN
from emceepee.backends.links.wrapped_link import WrappedLink
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.clock import Clock
from emceepee.telemetry.link_observer import CalledServer, LinkObserver, OutgoingRequest, SentRequest
from emceepee.telemetry.observer_guard import ObserverGuard
from emceepee.wire.json_types import JsonObject

_USUAL_PORTS = {"http": 80, "https": 443}


def callee_of(spec: BackendSpec) -> CalledServer:
    if not isinstance(spec.target, HttpTarget):
        return CalledServer(name=spec.name)
    if is_unix_url(spec.target.url):
        return CalledServer(name=spec.name, address=place_of(spec.target.url), is_socket=True)
    parts = urlsplit(spec.target.url)
    try:
        port = parts.port
    except ValueError:
        port = None
    return CalledServer(name=spec.name, address=parts.hostname, port=port or _USUAL_PORTS.get(parts.scheme))


class ObservedLink(WrappedLink):
    """Observes `request`, and delegates everything else to the link."""

    def __init__(self, link: Link, callee: CalledServer, observer: LinkObserver, clock: Clock) -> None:
        super().__init__(link)
        self._callee, self._observer = callee, observer
        version, since = link.facts.protocol_version, clock.monotonic()
        link.closed.add_done_callback(lambda _: _tell_end(observer, callee, version, clock.monotonic() - since))

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        sent = None if method == LISTEN else self._begin(method, params or {})  # LISTEN lasts as long as the link
        if sent is None:
            return await self._link.request(method, params, origin=origin, headers=headers)
        if sent.meta:
            params = NumberedParams(_with_meta(params or {}, sent.meta), sent.number)
            headers = {**(headers or {}), **sent.headers}
        try:
            result = await self._link.request(method, params, origin=origin, headers=headers)
        except BaseException as error:
            sent.failed(*_failure(error))
            raise
        sent.answered(result)
        return result

    def _begin(self, method: str, params: JsonObject) -> "_Sent | None":
        with ObserverGuard(self._observer):
            version = self.facts.protocol_version
            request = OutgoingRequest(callee=self._callee, protocol_version=version, method=method, params=params)
            return _Sent(self._observer.begin(request))
        return None


def _tell_end(observer: LinkObserver, callee: CalledServer, protocol_version: str, seconds: float) -> None:
    with ObserverGuard(observer):
        observer.link_ended(callee, protocol_version, seconds)


class _Sent:
    """An observed request. Contains the observer's exceptions."""

    def __init__(self, sent: SentRequest) -> None:
        self._sent = sent
        self.meta, self.headers = sent.meta, sent.headers

    def number(self, number: int) -> None:
        with ObserverGuard(self._sent):
            self._sent.number(number)

    def answered(self, result: JsonObject) -> None:
        with ObserverGuard(self._sent):
            self._sent.answered(result)

    def failed(self, why: str, code: int | None) -> None:
        with ObserverGuard(self._sent):
            self._sent.failed(why, code)


def _with_meta(params: JsonObject, meta: Mapping[str, str]) -> JsonObject:
    own = params.get("_meta")
    return {**params, "_meta": {**(own if isinstance(own, dict) else {}), **meta}}


def _failure(error: BaseException) -> tuple[str, int | None]:
    if isinstance(error, RpcError):
        return ("rpc_error" if error.code is None else str(error.code)), error.code
    if isinstance(error, LinkError):
        return str(error.failure), None
    return ("cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__), None
