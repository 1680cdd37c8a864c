"""Requests that any component rejects are reported to observers without secrets."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from emceepee.sessions.session import Session
from emceepee.state.session_key import SessionKey
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import StoreUnavailable
from emceepee.telemetry.audit_log import AuditLog
from emceepee.telemetry.label_values import OTHER
from emceepee.telemetry.request_metrics import RequestMetrics
from emceepee.telemetry.spans import SpanStatus
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Request
from support.callers.emceepee_process import MODERN_META
from support.callers.http_process import HELLO
from support.fakes.clock import FakeClock, settle
from support.fakes.otel_recorder import OtelRecorder, attributes_of
from support.in_process.http_endpoint import EndpointClient, an_endpoint_client
from support.in_process.stdio_client import StdioClient, a_stdio_client
from support.sessions.request_contexts import ALL_TOOLS
from support.sessions.scene import a_scene

SECRET = "nobody-else-is-to-read-this"
MODERN = {"mcp_protocol_version": "2026-07-28"}
DURATION = "mcp.server.operation.duration"
UNKNOWN = {"name": "make_coffee", "arguments": {"key": SECRET}}
INSIDE = {"name": "execute_tool", "arguments": {"server": "emceepee", "tool": "make_coffee", "args": {"key": SECRET}}}
NO_OBJECT = {"name": "list_servers", "arguments": [SECRET]}
UNFIT = {"name": "remove_server", "arguments": {"called": "x"}}
NOWHERE = {"name": "list_servers", "arguments": {"session": SECRET}}


class Watch:
    """The records of each observer."""

    def __init__(self, folder: Path) -> None:
        self.otel, self.figures = OtelRecorder(FakeClock()), RequestMetrics()
        self._path = folder / "audit"
        self.audit = AuditLog(self._path, FakeClock(), with_arguments=True)
        self.observers = (self.otel.requests, self.figures, self.audit)

    def failures(self) -> list[tuple[str, str, str | None]]:
        """The spans of requests that failed: name, kind of error, code."""
        told = [(span.name, attributes_of(span)) for span in self.otel.spans]
        return [
            (name, about["error.type"], about.get("rpc.response.status_code"))
            for name, about in told
            if "error.type" in about
        ]

    def counted(self) -> dict[tuple[str, str], int]:
        """The failed requests, by kind and name."""
        failed = {(str(one.kind), one.name): one.statuses.get(SpanStatus.ERROR, 0) for one in self.figures}
        return {key: count for key, count in failed.items() if count}

    def lines(self) -> list[dict[str, Any]]:
        self.audit.flush()
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def everything(self) -> str:
        measured = [dict(point.attributes or {}) for point in self.otel.points(DURATION)]
        return repr(([span.to_json() for span in self.otel.spans], measured, self.lines()))


@pytest.fixture
def watch(tmp_path: Path) -> Watch:
    return Watch(tmp_path)


@asynccontextmanager
async def watched_endpoint(watch: Watch, **settings: Any) -> AsyncIterator[EndpointClient]:
    async with an_endpoint_client(observers=watch.observers, **settings) as client:
        yield client


@pytest.mark.parametrize(
    ("params", "span", "counted", "line"),
    [
        (UNKNOWN, ("tools/call", "-32602", "-32602"), ("unknown_tool", OTHER), ("unknown_tool", UNKNOWN["name"])),
        ({}, ("tools/call", "-32602", "-32602"), ("unknown_tool", OTHER), ("unknown_tool", "")),
        (INSIDE, ("tools/call", "-32602", "-32602"), ("unknown_tool", OTHER), ("unknown_tool", UNKNOWN["name"])),
        (
            NO_OBJECT,
            ("tools/call list_servers", "-32602", "-32602"),
            ("own_tool", "list_servers"),
            ("own_tool", "list_servers"),
        ),
        (
            UNFIT,
            ("tools/call remove_server", "tool_error", None),
            ("own_tool", "remove_server"),
            ("own_tool", "remove_server"),
        ),
        (
            NOWHERE,
            ("tools/call list_servers", "tool_error", None),
            ("own_tool", "list_servers"),
            ("own_tool", "list_servers"),
        ),
    ],
    ids=["unknown tool", "nameless", "inside of another", "no object", "unfit", "no such session"],
)
@pytest.mark.parametrize("era", ["handshake", "modern"])
async def test_a_call_of_an_unknown_tool_is_reported_to_every_observer(
    watch: Watch,
    era: str,
    params: dict[str, Any],
    span: tuple[str, str, str | None],
    counted: tuple[str, str],
    line: tuple[str, str],
) -> None:
    async with watched_endpoint(watch) as client:
        if era == "handshake":
            connection = await client.join()
            await client.ask("POST", body=client.message("tools/call", params), mcp_session_id=connection)
        else:
            _, task = await client.start_modern("tools/call", params)
            await task
    assert watch.failures() == [span]
    assert watch.counted() == {counted: 1}
    assert [(each["kind"], each["name"], each["outcome"], each["principal"]) for each in watch.lines()] == [
        (*line, "error", "local")
    ]
    assert SECRET not in watch.everything()


async def test_unknown_tool_names_share_one_name_in_spans_and_metrics(watch: Watch) -> None:
    async with watched_endpoint(watch) as client:
        connection = await client.join()
        for number in range(30):
            for method, params in (
                ("tools/call", {"name": f"up-{number}"}),
                ("tools/call", {"name": "execute_tool", "arguments": {"server": "emceepee", "tool": f"up-{number}"}}),
                ("tools/call", {"name": "execute_tool", "arguments": {"server": f"up-{number}", "tool": "x"}}),
                ("prompts/get", {"name": f"up-{number}"}),
                (f"up/{number}", {}),
                ("tools/list", {"_meta": MODERN_META | {"io.modelcontextprotocol/protocolVersion": f"up-{number}"}}),
            ):
                await client.ask("POST", body=client.message(method, params), mcp_session_id=connection)
    assert {name for name, _, _ in watch.failures()} == {
        *("tools/call", "tools/call execute_tool", "prompts/get", OTHER, "tools/list")
    }
    values = {str(value) for point in watch.otel.points(DURATION) for value in attributes_of(point).values()}
    assert not any(value.startswith("up") for value in values)
    assert {one.name for one in watch.figures} == {"initialize", OTHER}


@pytest.mark.parametrize(
    ("method", "params", "span"),
    [
        ("tools/list", {"_meta": MODERN_META}, ("tools/list", "-32600", "-32600")),
        ("tools/call", NOWHERE | {"_meta": MODERN_META}, ("tools/call list_servers", "-32600", "-32600")),
        ("prompts/list", {}, ("prompts/list", "-32601", "-32601")),
        ("resources/read", {"uri": 5}, ("resources/read", "-32602", "-32602")),
    ],
)
async def test_a_protocol_error_produces_a_span_with_its_code(
    watch: Watch, method: str, params: dict[str, Any], span: tuple[str, str, str]
) -> None:
    async with watched_endpoint(watch) as client:
        connection = await client.join()
        answered = await client.ask("POST", body=client.message(method, params), mcp_session_id=connection)
    assert str(answered.error["code"]) == span[2]
    assert watch.failures() == [span]
    (told,) = [each for each in watch.otel.spans if each.name == span[0]]
    assert attributes_of(told)["network.transport"] == "tcp"
    assert "mcp.session.id" in attributes_of(told)


@pytest.mark.parametrize(
    ("message", "headers", "status", "span"),
    [
        (("tools/call", NOWHERE), {}, 400, ("tools/call list_servers", "-32600", "-32600")),
        (("ping", {}), {"mcp_session_id": SECRET}, 404, ("ping", "-32600", "-32600")),
        (("tools/call", UNKNOWN), {"mcp_session_id": SECRET}, 404, ("tools/call", "-32600", "-32600")),
        (("initialize", {}), {}, 200, ("initialize", "-32602", "-32602")),
        (("initialize", HELLO), {"emceepee_session": "x" * 201}, 400, ("initialize", "-32600", "-32600")),
        (("tools/list", {}), MODERN, 400, ("tools/list", "-32602", "-32602")),
        (("tools/list", {"_meta": MODERN_META}), MODERN, 400, ("tools/list", "-32020", "-32020")),
    ],
    ids=["no session", "ended session", "call in it", "no handshake", "long name", "no envelope", "other headers"],
)
async def test_a_request_that_no_connection_serves_is_reported_to_observers(
    watch: Watch, message: tuple[str, Any], headers: dict[str, str], status: int, span: tuple[str, str, str]
) -> None:
    async with watched_endpoint(watch) as client:
        answered = await client.ask("POST", body=client.message(*message), **headers)
    assert (answered.status, watch.failures()) == (status, [span])
    assert len(watch.otel.points(DURATION)) == 1
    assert [line["name"] for line in watch.lines()] == ([message[1]["name"]] if message[0] == "tools/call" else [])


async def test_a_message_that_is_not_a_request_is_not_reported_to_observers(watch: Watch) -> None:
    async with watched_endpoint(watch) as client:
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        bodies: list[Any] = [told, {"jsonrpc": "1.0", "id": 1}, [], 5]
        for body in bodies:
            await client.ask("POST", body=body)
            await client.ask("POST", body=body, mcp_session_id="unknown")
            await client.ask("POST", body=body, **MODERN)
        await client.ask("GET", mcp_session_id="unknown")
    assert (watch.otel.spans, list(watch.figures), watch.lines()) == ((), [], [])


async def test_a_request_over_the_session_limit_is_reported_to_observers(watch: Watch) -> None:
    async with watched_endpoint(watch, sessions_per_principal=1) as client:
        await client.join()
        client.sessions()[0].open_streams += 1  # so it is not evicted
        full = await client.ask("POST", body=client.message("initialize", HELLO))
        assert full.status == 503
        for tool in ("open_session", "list_timers"):
            answered, task = await client.start_modern("tools/call", {"name": tool, "arguments": {}})
            await task
            assert json.loads(answered.body)["result"]["structuredContent"]["error"]["code"] == "ERR_LIMIT_EXCEEDED"
    assert watch.failures() == [
        ("initialize", "-32600", "-32600"),
        ("tools/call open_session", "tool_error", None),
        ("tools/call list_timers", "tool_error", None),
    ]
    assert [(line["name"], line["session"]) for line in watch.lines()] == [("open_session", ""), ("list_timers", "")]


class UnreadableStore(MemoryStore):
    """One that says of no session whether it is there."""

    async def take(self, key: SessionKey) -> NoReturn:
        raise StoreUnavailable("it cannot be read")


async def test_a_request_whose_session_cannot_be_loaded_is_reported_to_observers(watch: Watch) -> None:
    async with watched_endpoint(watch, store=UnreadableStore(is_durable=True)) as client:
        assert await client.status("unknown") == 503
        given = {"name": "close_session", "arguments": {"session": "unknown"}}
        answered, task = await client.start_modern("tools/call", given)
        await task
        assert answered.status == 503
    assert watch.failures() == [
        ("ping", "-32600", "-32600"),
        ("tools/call close_session", "-32600", "-32600"),
    ]


async def test_a_tool_without_a_session_is_reported_to_observers_without_its_handle(watch: Watch) -> None:
    async with watched_endpoint(watch) as client:
        opened, task = await client.start_modern("tools/call", {"name": "open_session", "arguments": {}})
        await task
        handle = json.loads(opened.body)["result"]["structuredContent"]["session"]
        _, task = await client.start_modern("tools/call", {"name": "close_session", "arguments": {"session": handle}})
        await task
    assert [span.name for span in watch.otel.spans] == ["tools/call open_session", "tools/call close_session"]
    assert watch.failures() == []
    assert [(line["name"], line["outcome"], line["arguments"]) for line in watch.lines()] == [
        ("open_session", "success", {}),
        ("close_session", "success", {"session": "***"}),
    ]
    assert handle not in watch.everything()


@asynccontextmanager
async def watched_conversation(watch: Watch) -> AsyncIterator[StdioClient]:
    async with a_stdio_client(observers=watch.observers) as client:
        yield client


async def test_a_call_before_the_handshake_is_reported_to_observers(watch: Watch) -> None:
    async with watched_conversation(watch) as client:
        await client.call("list_servers")
        assert (await client.next())["error"]["code"] == -32600
    assert watch.failures() == [("tools/call list_servers", "-32600", "-32600")]
    (line,) = watch.lines()
    assert (line["principal"], line["session"]) == ("local", client.scene.session.session_id)
    assert attributes_of(watch.otel.spans[0])["network.transport"] == "pipe"


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_each_rejected_request_of_a_batch_is_reported_to_observers(watch: Watch, transport: str) -> None:
    refused = {"jsonrpc": "2.0", "method": "tools/list", "params": {"_meta": MODERN_META}}
    batch = [refused | {"id": 1}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}, refused | {"id": 3}]
    if transport == "stdio":
        async with watched_conversation(watch) as caller:
            await caller.open("2025-03-26")
            await caller.say(batch)
            replies = await caller.next()
    else:
        async with watched_endpoint(watch) as client:
            hello = client.message("initialize", HELLO | {"protocolVersion": "2025-03-26"})
            joined = (await client.ask("POST", body=hello)).headers["mcp-session-id"]
            replies = json.loads((await client.ask("POST", body=batch, mcp_session_id=joined)).body)
    assert [reply["id"] for reply in replies] == [1, 3, 2]
    assert watch.failures() == 2 * [("tools/list", "-32600", "-32600")]


async def test_a_rejected_request_is_not_recorded_in_any_visible_journal(watch: Watch) -> None:
    async with watched_conversation(watch) as client:
        await client.open()
        await settle()
        before = len(client.scene.session.journal)
        await client.ask("tools/call", **UNKNOWN)
        await client.next()
        assert len(client.scene.session.journal) == before
    assert len(watch.failures()) == 1


async def test_a_rejected_request_without_observers_creates_no_records() -> None:
    async with a_scene() as scene:
        context = RequestContext(Request(1, "tools/call", UNKNOWN), scene.session)
        assert context.unkept_journal() is None
        assert ALL_TOOLS.begin_unkept(UNKNOWN, context) is None
    async with an_endpoint_client() as client:
        assert RequestContext(directory=client.endpoint.directory).unkept_journal() is None


class SearchingContext(RequestContext):
    """Of a call whose session is looked for and looked for."""

    async def find_session(self, handle: str) -> Session:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]  # it has no result


async def test_a_call_canceled_while_its_session_is_looked_up_is_reported_to_observers(watch: Watch) -> None:
    async with watched_endpoint(watch) as client:
        params = {"name": "list_servers", "arguments": {"session": "x"}}
        context = SearchingContext(Request(1, "tools/call", params), directory=client.endpoint.directory)
        calling = asyncio.create_task(ALL_TOOLS.call(params, context))
        await settle()
        calling.cancel()
        await asyncio.wait([calling], timeout=5)
        assert calling.cancelled()
    assert watch.failures() == [("tools/call list_servers", "cancelled", None)]
