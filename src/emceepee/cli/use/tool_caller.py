"""How commands use servers: through emceepee's own tools, in a local session or in a running `emceepee serve`."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from emceepee.app.session_parts import open_session, open_store, session_parts
from emceepee.backends.backend_task import BackendTask
from emceepee.backends.dialer import Dialer
from emceepee.backends.link import Link, LinkError, RpcError
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.cli.serving_arguments import bare_token
from emceepee.clock import SystemClock, milliseconds
from emceepee.config.settings import Config
from emceepee.errors import ErrorCode
from emceepee.guard.caller_identity import LOCAL
from emceepee.ids import Ulids
from emceepee.lifecycle import CLOSE_LINK_SECONDS, close_bounded
from emceepee.paths import TOKEN_VARIABLE
from emceepee.server.dispatch import BadCall, Tools
from emceepee.sessions.session import Session
from emceepee.telemetry.redaction import public_url
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.argument_limits import fit_tools
from emceepee.tools.replies.notices import EVENTS, MOVED, NOTICE_KEYS, PENDING, UNSAVED, read_notice
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    import asyncio

PROGRESS = "notifications/progress"
CONNECT_ON_USE = {"Emceepee-Connect": "on-use"}
OnProgress = Callable[[JsonObject], None]
_METHOD_NOT_FOUND = -32601
_HELP_PAGES = frozenset(code.help_url for code in ErrorCode)


class CallFailed(Exception):
    """The call gave no result; the message describes what to do."""


class _Endpoint(Protocol):
    """Access to emceepee's tools."""

    async def ask(self, params: JsonObject, on_progress: OnProgress) -> JsonObject:
        """Send one `tools/call`. Raises: CallFailed."""
        ...


class ToolCaller:
    """Calls emceepee's own tools, and strips the notices for models from their results."""

    def __init__(self, endpoint: _Endpoint) -> None:
        self._endpoint = endpoint

    @classmethod
    @asynccontextmanager
    async def here(cls, config: Config) -> "AsyncIterator[ToolCaller]":
        """Open a session in this process with its own configuration. Servers start on first use.

        Lists wait for all servers: the process ends with the command, so a later command could only start them again.
        """
        clock, limits = SystemClock(), config.limits
        patience = max(limits.list_patience_seconds, limits.connect_seconds)
        config = replace(config, limits=replace(limits, list_patience_seconds=patience))
        async with open_store(config, clock) as store, session_parts(config, clock, store) as parts:
            session_id = Ulids(lambda: milliseconds(clock.now())).new()
            async with open_session(session_id, LOCAL, parts) as session:
                session.update_profile(connects_on_use=True)
                yield cls(_HereEndpoint(session, Tools(fit_tools(TOOLS, config.limits))))

    @classmethod
    @asynccontextmanager
    async def at(cls, url: str, token: str | None, config: Config) -> "AsyncIterator[ToolCaller]":
        """Open a separate session at a running `emceepee serve`. Raises: CallFailed."""
        clock = SystemClock()
        headers = CONNECT_ON_USE | ({} if token is None else {"Authorization": f"Bearer {bare_token(token)}"})
        target = HttpTarget(url=mcp_url(url), headers=headers, kind="http", sends_session_id=False)
        spec = BackendSpec(name="emceepee", target=target, mode="legacy")
        async with Dialer.running(clock, config.limits, egress=config.egress) as dialer:
            try:
                link = await dialer.dial(spec, _Listener(), capabilities={})
            except (LinkError, RpcError) as error:
                raise CallFailed(_unreachable(url, error)) from None
            try:
                yield cls(_LinkEndpoint(link))
            finally:
                await close_bounded(link.close(), within=CLOSE_LINK_SECONDS, what="the line to emceepee")

    async def call(self, tool: str, arguments: JsonObject, on_progress: OnProgress = lambda _: None) -> JsonObject:
        """Return the whole result. Raises: CallFailed."""
        return without_notices(await self._endpoint.ask({"name": tool, "arguments": arguments}, on_progress))

    async def value(self, tool: str, arguments: JsonObject) -> JsonObject:
        """Return the structured content of a successful call. Raises: CallFailed."""
        result = await self.call(tool, arguments)
        if result.get("isError"):
            raise CallFailed(error_report(result))
        structured = result.get("structuredContent")
        return structured if isinstance(structured, dict) else {}


def mcp_url(url: str) -> str:
    """Return the endpoint's URL. The path may be omitted from `url`."""
    base, sign, query = url.partition("?")
    if "://" not in base:
        base = f"http://{base}"
    rest = base.partition("://")[2]
    if "/" not in rest.rstrip("/"):
        base = f"{base.rstrip('/')}/mcp"
    return f"{base}{sign}{query}"


def without_notices(result: JsonObject) -> JsonObject:
    """Return the result as the server sent it, without emceepee's notices."""
    content = result.get("content")
    if isinstance(content, list):
        kept = list(content)
        while kept and _is_notice(kept[-1]):
            kept.pop()
        result = result | {"content": kept}
    structured = result.get("structuredContent")
    if isinstance(structured, dict):
        added = NOTICE_KEYS if EVENTS in structured else {PENDING, MOVED, UNSAVED}
        own = {key: value for key, value in structured.items() if key not in added}
        if isinstance(under := own.get("emceepee"), dict) and under and under.keys() <= NOTICE_KEYS:
            del own["emceepee"]
        result = result | {"structuredContent": own}
    return result


def _is_notice(block: object) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and read_notice(text) is not None


def error_words(result: JsonObject) -> str:
    """Return the message of an error result."""
    content = result.get("content")
    texts = [str(block.get("text", "")) for block in content or () if isinstance(block, dict)]
    return texts[0] if texts else "it failed without an error message"


def error_report(result: JsonObject) -> str:
    """Return the message of an error result, with the help page for its code."""
    page = _help_page(result)
    return error_words(result) if page is None else f"{error_words(result)}\nSee {page}"


def _help_page(result: JsonObject) -> str | None:
    """Return the help page only if it is emceepee's: a server's error may have any value in the same place."""
    value: object = result
    for key in ("structuredContent", "error", "details", "help"):
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) and value in _HELP_PAGES else None


def _unreachable(url: str, error: LinkError | RpcError) -> str:
    shown = public_url(url)
    if getattr(error, "status", 0) in (401, 403):
        return f"{shown} requires a token, or rejected this one: pass --token, or set {TOKEN_VARIABLE}"
    return (
        f"no emceepee answers at {shown}: {error}. Start one with `emceepee serve`, or omit --url to start the "
        f"servers in this process"
    )


class _HereEndpoint:
    """Calls tools in a session of this process."""

    def __init__(self, session: Session, tools: Tools) -> None:
        self._session, self._tools, self._count = session, tools, 0

    async def ask(self, params: JsonObject, on_progress: OnProgress) -> JsonObject:
        self._count += 1
        params = params | {"_meta": {"progressToken": self._count}}
        request = Request(self._count, "tools/call", params)
        context = RequestContext(request, self._session, _ProgressChannel(on_progress), LOCAL)
        try:
            return await self._tools.call(params, context)
        except BadCall as error:
            raise CallFailed(str(error)) from None
        finally:
            context.close()


class _ProgressChannel:
    is_gone = False

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress

    def send(self, message: JsonObject) -> None:
        if message.get("method") == PROGRESS:
            self._on_progress(message["params"])


@dataclass(frozen=True, slots=True)
class _Progress:
    tell: OnProgress


class _LinkEndpoint:
    """Calls tools of a running emceepee over HTTP."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def ask(self, params: JsonObject, on_progress: OnProgress) -> JsonObject:
        try:
            return await self._link.request("tools/call", params, origin=_Progress(on_progress))
        except (LinkError, RpcError) as error:
            raise CallFailed(f"emceepee did not answer: {error}") from None


class _Listener:
    """Forwards progress to its request. emceepee sends no requests to a client without capabilities."""

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        raise RpcError({"code": _METHOD_NOT_FOUND, "message": "the command line answers by tools"})

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        if method == PROGRESS and isinstance(origin, _Progress):
            origin.tell(params)

    def handle_output(self, line: str, source: str) -> None: ...

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        return None

    def handle_task(self, task: BackendTask, origin: object | None) -> None: ...
