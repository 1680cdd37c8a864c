"""Opens links: chooses the transport for a configuration, and cleans up after a failure."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from emceepee import __version__
from emceepee.backends.backend_metrics import BackendMetrics
from emceepee.backends.era_memory import EraMemory
from emceepee.backends.http.http_link import HttpLink
from emceepee.backends.http.http_wire import unsendable
from emceepee.backends.http.sse_link import SseLink
from emceepee.backends.http1.egress import NOTHING_SET, EgressSettings
from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.link import Link, LinkError, LinkFailure, Listener, RpcError
from emceepee.backends.links.link_view import SharedResumption
from emceepee.backends.links.observed_link import ObservedLink, callee_of
from emceepee.backends.links.shared_links import SharedLinks
from emceepee.backends.negotiation import EndedByProbe, NegotiationTerms, client_capabilities, is_outage
from emceepee.backends.oauth.login_reach import LoginReach, list_nothing
from emceepee.backends.oauth.oauth_sender import OAuthSender
from emceepee.backends.oauth.token_access import Authorizer, TokenAccess, TokenSource
from emceepee.backends.process.child_processes import ChildProcesses
from emceepee.backends.process.process_slots import Occupant, ProcessSlots
from emceepee.backends.process.stdio_link import StdioLink
from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget, UnusableTarget
from emceepee.clock import Clock
from emceepee.lifecycle import CLOSE_LINK_SECONDS, close_bounded
from emceepee.state.limits import Limits
from emceepee.telemetry.link_observer import LinkObserver
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from emceepee.backends.recording.recorder import Recorder
    from emceepee.backends.recording.recordings import Recordings

AGENT = {"user-agent": f"emceepee/{__version__}"}
CALLER_HEADER = "emceepee-session-id"
# An older SSE server rejects a POST to the address of its stream with one of these statuses.
SSE_HINTS = (400, 404, 405)


class Dialer:
    """Opens links. HTTP links share one pool of connections and one TLS context, but no cookies."""

    def __init__(
        self,
        pool: ConnectionPool,
        child_processes: ChildProcesses,
        clock: Clock,
        limits: Limits,
        *,
        roots: tuple[str, ...] = (),
        observer: LinkObserver | None = None,
        is_listed: Callable[[str], bool] = list_nothing,
    ) -> None:
        """`is_listed` returns whether --allow-url lists an address."""
        self._pool, self._clock, self._limits, self._roots = pool, clock, limits, roots
        self._child_processes = child_processes
        self._process_slots = ProcessSlots(limits, clock)
        self.eras = EraMemory(clock)
        self.figures = BackendMetrics()
        self._observer, self._is_listed = observer, is_listed
        self._shared = SharedLinks()
        self._recordings: Recordings | None = None

    @classmethod
    @asynccontextmanager
    async def running(
        cls,
        clock: Clock,
        limits: Limits,
        *,
        roots: tuple[str, ...] = (),
        egress: EgressSettings = NOTHING_SET,
        observer: LinkObserver | None = None,
        is_listed: Callable[[str], bool] = list_nothing,
    ) -> "AsyncIterator[Dialer]":
        """Raises: BadTlsFile."""
        child_processes = ChildProcesses()
        per_origin, in_all = limits.connections_per_origin, limits.connections_in_all
        contexts = egress.contexts()
        async with ConnectionPool.running(
            clock,
            contexts.of(None),
            per_origin=per_origin,
            in_all=in_all,
            proxies=egress.proxies,
            contexts=contexts,
        ) as pool:
            dialer = cls(pool, child_processes, clock, limits, roots=roots, observer=observer, is_listed=is_listed)
            try:
                yield dialer
            finally:
                await child_processes.close()
                if dialer._recordings is not None:
                    await dialer._recordings.close()

    @property
    def recordings(self) -> "Recordings":
        """The recordings, loaded on first use."""
        if self._recordings is None:
            from emceepee.backends.recording.recordings import Recordings

            self._recordings = Recordings(self._clock, self._limits)
        return self._recordings

    def login_sender(self, target: HttpTarget, principal: str) -> OAuthSender:
        """Return the sender for a principal's login to that server. It reaches only permitted addresses."""
        return OAuthSender(
            pool=self._pool,
            clock=self._clock,
            owner=principal,
            reach=login_reach(target, self._is_listed),
            tls=target.tls,
        )

    def roots_of(self, spec: BackendSpec) -> tuple[str, ...]:
        """Return the roots offered to a backend: its own roots, or else the default roots."""
        return spec.roots or self._roots

    async def dial(
        self,
        spec: BackendSpec,
        listener: Listener,
        *,
        principal: str = "",
        caller_id: str | None = None,
        resumption: object | None = None,
        authorizer: Authorizer | None = None,
        capabilities: JsonObject | None = None,
        recorder: "Recorder | None" = None,
        occupant: Occupant | None = None,
    ) -> Link:
        """Return an open link. If opening fails, leave nothing running.

        Links of one `principal` share connections. `caller_id` is sent to HTTP backends that keep state per caller.
        `resumption` comes from the previous link. The `authorizer` has the principal's tokens for this server.
        `capabilities` replace the usual ones. Traffic is written to the `recorder`, and to the file in the server's
        configuration. The `occupant` is asked to stop its idle process when another process needs the slot.

        Raises:
            RpcError, LinkError
        """
        dial = partial(
            self._dial_unrecorded,
            spec,
            caller=_Caller(principal, caller_id, authorizer, occupant),
            authorizer=authorizer,
            resumption=resumption,
            capabilities=capabilities,
        )
        if recorder is None and spec.record is None:
            return await dial(listener)
        from emceepee.backends.recording.recorded_link import dial_recorded

        recorders = (recorder, self.recordings.in_file(spec))
        return await dial_recorded(dial, listener, [each for each in recorders if each is not None])

    async def _dial_unrecorded(
        self,
        spec: BackendSpec,
        listener: Listener,
        *,
        caller: "_Caller",
        authorizer: Authorizer | None,
        resumption: object | None,
        capabilities: JsonObject | None,
    ) -> Link:
        if authorizer is not None:
            await authorizer.load()
        if spec.is_shared:
            last = resumption if isinstance(resumption, SharedResumption) else SharedResumption(None)

            def open_shared(all_users: Listener, access: TokenSource) -> Awaitable[Link]:
                user = _Caller(caller.principal, None, None if authorizer is None else access)
                return self._dial_known_era(spec, all_users, user, last.resumption)

            return await self._shared.join(spec, caller.principal, listener, open_shared, authorizer, last.tasks)
        return await self._dial_known_era(spec, listener, caller, resumption, capabilities)

    async def _dial_known_era(
        self,
        spec: BackendSpec,
        listener: Listener,
        caller: "_Caller",
        resumption: object | None,
        capabilities: JsonObject | None = None,
    ) -> Link:
        if capabilities is None:
            capabilities = client_capabilities(has_roots=bool(self.roots_of(spec)))
        known = self.eras.recall(spec.target) if spec.mode == "auto" else None
        if known is not None:
            try:
                link = await self._dial(spec, listener, NegotiationTerms(known, capabilities), caller, resumption)
                return self._add_observer(spec, link)
            except (RpcError, LinkError) as error:
                is_no_verdict = isinstance(error, LinkError) and is_outage(error)
                if not is_no_verdict or known != "legacy":  # an older server may exit because of the probe
                    self.eras.forget(spec.target)
                if is_no_verdict:
                    raise
        try:
            link = await self._dial(spec, listener, NegotiationTerms(spec.mode, capabilities), caller, resumption)
        except EndedByProbe as end:
            try:
                link = await self._dial(spec, listener, NegotiationTerms("legacy", capabilities), caller, resumption)
            except RpcError:
                raise end from None  # it is not an older server: its first error explains more
        if spec.mode == "auto":
            self.eras.learn(spec.target, link.facts)
        return self._add_observer(spec, link)

    def _add_observer(self, spec: BackendSpec, link: Link) -> Link:
        if self._observer is None:
            return link
        return ObservedLink(link, callee_of(spec), self._observer, self._clock)

    async def _dial(
        self,
        spec: BackendSpec,
        listener: Listener,
        terms: NegotiationTerms,
        caller: "_Caller",
        resumption: object | None,
    ) -> Link:
        if isinstance(spec.target, StdioTarget):
            return await self._open_stdio(spec.target, listener, terms, caller)
        if isinstance(spec.target, UnusableTarget):
            raise LinkError(LinkFailure.UNREACHABLE, spec.target.reason, may_have_run=False)
        target = _with_caller(spec.target, caller)
        match target.kind:
            case "http":
                return await self._open_http(self._client(target, caller), listener, terms, resumption)
            case "sse":
                return await self._open_sse(self._client(target, caller, is_sse=True), listener, terms)
            case "any":
                return await self._open_http_or_sse(target, listener, terms, caller, resumption)

    async def _open_http_or_sse(
        self,
        target: HttpTarget,
        listener: Listener,
        terms: NegotiationTerms,
        caller: "_Caller",
        resumption: object | None,
    ) -> Link:
        try:
            return await self._open_http(self._client(target, caller), listener, terms, resumption)
        except LinkError as refusal:
            if refusal.status not in SSE_HINTS:
                raise
            first: Exception = refusal
        except RpcError as refusal:
            first = refusal
        try:
            return await self._open_sse(self._client(target, caller, is_sse=True), listener, terms)
        except EndedByProbe:
            raise
        except (LinkError, RpcError) as error:
            raise first from error

    async def _open_stdio(
        self, target: StdioTarget, listener: Listener, terms: NegotiationTerms, caller: "_Caller"
    ) -> Link:
        slot = await self._process_slots.occupy(caller.principal, caller.occupant)
        link = StdioLink(listener, self._child_processes, self._clock, most_requests=self._limits.requests_per_link)
        try:
            async with _closing_on_failure(link):
                await link.start(target, terms, longest=self._limits.line_bytes)
        except BaseException:
            self._process_slots.free(slot)
            raise
        slot.link = link
        link.process_ended.add_done_callback(lambda _: self._process_slots.free(slot))
        return link

    async def _open_http(
        self, http: HttpClient, listener: Listener, terms: NegotiationTerms, resumption: object | None
    ) -> Link:
        link = HttpLink(
            http,
            listener,
            clock=self._clock,
            largest=self._limits.line_bytes,
            most_requests=self._limits.requests_per_link,
        )
        async with _closing_on_failure(link):
            await link.start(terms, resumption)
        return link

    async def _open_sse(self, http: HttpClient, listener: Listener, terms: NegotiationTerms) -> Link:
        link = SseLink(
            http,
            listener,
            largest=self._limits.line_bytes,
            most_requests=self._limits.requests_per_link,
        )
        async with _closing_on_failure(link):
            await link.start(terms)
        return link

    def _client(self, target: HttpTarget, caller: "_Caller", *, is_sse: bool = False) -> HttpClient:
        """Return a client for one link, because its headers and cookies belong to one caller. Raises: LinkError."""
        access = None
        if caller.access is not None:
            access = TokenAccess(caller.access, self._clock, logs_in_on_get=is_sse)
        headers = AGENT | target.headers
        try:
            return HttpClient(
                self._pool,
                target.url,
                headers,
                owner=target.owner,
                is_public=target.is_public,
                tls=target.tls,
                access=access,
            )
        except ValueError as error:
            raise unsendable(error) from error


def login_reach(target: HttpTarget, is_listed: Callable[[str], bool]) -> LoginReach:
    settings = target.oauth
    provider = None if settings is None else settings.identity_provider
    return LoginReach(
        server_url=target.url,
        is_public=target.is_public,
        is_guarded=target.is_guarded,
        issuer=None if settings is None else settings.issuer,
        trusted=() if provider is None else (provider.token_endpoint,),
        is_listed=is_listed,
    )


class _Caller(NamedTuple):
    principal: str
    caller_id: str | None = None
    access: TokenSource | None = None
    occupant: Occupant | None = None


def _with_caller(target: HttpTarget, caller: _Caller) -> HttpTarget:
    caller_headers = (
        {CALLER_HEADER: caller.caller_id} if caller.caller_id is not None and target.sends_session_id else {}
    )
    return replace(target, owner=caller.principal, headers=target.headers | caller_headers)


@asynccontextmanager
async def _closing_on_failure(link: Link) -> AsyncIterator[None]:
    try:
        yield
    except BaseException as error:
        await close_bounded(link.close(), within=CLOSE_LINK_SECONDS, what="a link that could not be opened")
        if isinstance(error, asyncio.CancelledError | RpcError | LinkError):
            raise
        raise LinkError(LinkFailure.PROTOCOL, f"{type(error).__name__}: {error}") from error
