"""A link whose requests someone observes. Where nobody does, there is none of these."""

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from emceepee.backends.json_rpc import NumberedParams
from emceepee.backends.link import Link, LinkError, RpcError
from emceepee.backends.link_view import LISTEN
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.backends.wrapped_link import WrappedLink
from emceepee.clock import Clock
from emceepee.json_types import JsonObject
from emceepee.telemetry.outgoing import Callee, LinkObserver, OutgoingRequest

_USUAL_PORTS = {"http": 80, "https": 443}


def callee_of(spec: BackendSpec) -> Callee:
    if not isinstance(spec.target, HttpTarget):
        return Callee(name=spec.name)
    parts = urlsplit(spec.target.url)
    try:
        port = parts.port
    except ValueError:
        port = None
    return Callee(name=spec.name, address=parts.hostname, port=port or _USUAL_PORTS.get(parts.scheme))


class ObservedLink(WrappedLink):
    """All but `request` is done by the link itself."""

    def __init__(self, link: Link, callee: Callee, observer: LinkObserver, clock: Clock) -> None:
        super().__init__(link)
        self._callee, self._observer = callee, observer
        version, since = link.facts.protocol_version, clock.monotonic()
        link.closed.add_done_callback(lambda _: observer.link_ended(callee, version, clock.monotonic() - since))

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        if method == LISTEN:  # which lasts as long as the link
            return await self._link.request(method, params, origin=origin, headers=headers)
        sent = self._observer.begin(
            OutgoingRequest(
                callee=self._callee,
                protocol_version=self.facts.protocol_version,
                method=method,
                params=params or {},
            )
        )
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


def _with_meta(params: JsonObject, meta: Mapping[str, str]) -> JsonObject:
    own = params.get("_meta")
    return {**params, "_meta": {**(own if isinstance(own, dict) else {}), **meta}}


def _failure(error: BaseException) -> tuple[str, int | None]:
    if isinstance(error, RpcError):
        return ("rpc_error" if error.code is None else str(error.code)), error.code
    if isinstance(error, LinkError):
        return str(error.failure), None
    return ("cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__), None
