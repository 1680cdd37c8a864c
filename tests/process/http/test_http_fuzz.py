"""For any input, the answer is well-formed, the log contains no traceback, and the server continues."""

import asyncio
import json
import string
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.callers.http_process import HELLO, EventReader, HttpCaller, HttpProcess

pytestmark = pytest.mark.asyncio(loop_scope="module")
QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
METHODS = st.sampled_from(
    [
        *("initialize", "ping", "tools/list", "tools/call", "resources/list", "resources/read", "resources/subscribe"),
        *("server/discover", "subscriptions/listen", "notifications/cancelled", "notifications/initialized", "x", ""),
    ]
)
PARAMS = st.dictionaries(st.text(max_size=8), VALUES, max_size=3)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2, None]) | st.just("2.0"),
        "id": SCALARS | VALUES,
        "method": METHODS | VALUES,
        "params": VALUES | st.fixed_dictionaries({"name": st.just("set_timer"), "arguments": VALUES}),
        "result": VALUES,
        "error": VALUES,
    },
)
HEADER_TEXT = st.text(string.ascii_letters + string.digits + " \t*/;,=:@[]%\"'", max_size=40)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            *("accept", "content-type", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name", "origin"),
            *("host", "last-event-id", "emceepee-session", "authorization", "x-forwarded-for"),
        ]
    ),
    HEADER_TEXT | st.sampled_from(["application/json", "text/event-stream", "2025-11-25", "2026-07-28", "tools/call"]),
    max_size=5,
)


async def send(
    endpoint: HttpProcess, body: bytes, headers: dict[str, str], *, method: str = "POST", path: str = "/mcp"
) -> int:
    """The status; the answer must be what its headers say it is."""
    given = {"content-type": "application/json"} | {name: text.strip() for name, text in headers.items()}
    async with (
        asyncio.timeout(20),
        endpoint.http.request(method, endpoint.origin + path, data=body, headers=given) as response,
    ):
        assert response.status < 500, await response.text()
        if response.content_type == "text/event-stream":
            if method == "POST":
                event = await EventReader(response).next()
                assert event is None or event.message is None or event.message["jsonrpc"] == "2.0"
        elif response.status != 202 and method != "DELETE":
            answer = json.loads(await response.read())
            for one in answer if isinstance(answer, list) else [answer]:
                assert one.get("jsonrpc") == "2.0" or set(one) == {"error"}, one
                assert ("result" in one) != ("error" in one), one
        return response.status


@pytest.fixture
def living(caller: HttpCaller) -> HttpCaller:
    return caller


@QUIET
@given(message=MESSAGES)
async def test_any_message_in_a_session_gets_a_well_formed_answer(living: HttpCaller, message: Any) -> None:
    await send(living.endpoint, json.dumps(message).encode(), living.headers)


@QUIET
@given(message=MESSAGES | VALUES, headers=HEADERS)
async def test_any_message_with_any_headers_gets_a_well_formed_answer(
    endpoint: HttpProcess, message: Any, headers: dict[str, str]
) -> None:
    await send(endpoint, json.dumps(message).encode(), headers)


@QUIET
@given(body=st.binary(max_size=60), is_in_session=st.booleans())
async def test_any_bytes_get_a_well_formed_answer(living: HttpCaller, body: bytes, is_in_session: bool) -> None:
    await send(living.endpoint, body, living.headers if is_in_session else {})


MODERN = {"mcp-protocol-version": "2026-07-28"}
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


@QUIET
@given(
    method=METHODS, params=st.dictionaries(st.text(max_size=8), VALUES, max_size=3), meta=VALUES, is_bare=st.booleans()
)
async def test_any_request_of_2026_07_28_gets_a_well_formed_answer(
    endpoint: HttpProcess, method: str, params: dict[str, Any], meta: Any, is_bare: bool
) -> None:
    whole = {**params, "_meta": meta if is_bare or not isinstance(meta, dict) else meta | ENVELOPE}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": whole}).encode()
    await send(endpoint, body, MODERN | {"mcp-method": method})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"nonsense", 400),
        (b"[" * 100_000, 400),
        (b'{"a":' * 100_000, 400),
        (b"\xff\xfe", 400),
        (b'"\\ud800"', 400),
        (b"null", 400),
        (b"7", 400),
        (b"[]", 400),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', 400),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', 400),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', 400),
        (b'{"jsonrpc":"2.0","id":{},"method":"ping"}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}', 200),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ping","arguments":[]}}', 200),
        (b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}', 200),
        (b'{"jsonrpc":"2.0","id":"' + b"x" * 100_000 + b'","method":"ping"}', 200),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', 200),
        (b'{"jsonrpc":"2.0","id":1,"method":"' + b"m" * 100_000 + b'"}', 200),
    ],
)
async def test_an_invalid_body_gets_a_clear_error(living: HttpCaller, body: bytes, status: int) -> None:
    assert await send(living.endpoint, body, living.headers) == status


@pytest.mark.parametrize("number", [123456789012345678901234567890, -1, 0, 2**53 + 1, "", "1", "🫖"])
async def test_a_request_id_is_returned_unchanged(living: HttpCaller, number: Any) -> None:
    async with living.post("ping", key=number) as response:
        assert json.loads(await response.text())["id"] == number


@pytest.mark.parametrize(
    ("kind", "status"),
    [("text/plain", 415), ("", 415), ("application/jsonp", 415), ("application/json; charset=utf-8", 200)],
)
async def test_only_json_bodies_are_accepted(living: HttpCaller, kind: str, status: int) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
    assert await send(living.endpoint, body, living.headers | {"content-type": kind}) == status


@pytest.mark.parametrize(
    ("method", "accept", "status"),
    [
        ("GET", "application/json", 406),
        ("POST", "text/html", 406),
        ("POST", "application/json", 200),
        ("POST", "text/event-stream", 200),
        ("POST", "*/*", 200),
        ("POST", "application/*;q=0.5, TEXT/EVENT-STREAM", 200),
    ],
)
async def test_the_accept_header_of_a_caller_is_respected(
    living: HttpCaller, method: str, accept: str, status: int
) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() if method == "POST" else b""
    assert await send(living.endpoint, body, living.headers | {"accept": accept}, method=method) == status


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "/mcp/",
        "//mcp",
        "/mcp/../x",
        "/MCP",
        "/mcp%00",
        "/%2e%2e/etc/passwd",
        "/healthz/",
        "/.well-known/x",
        "/%ff",
    ],
)
async def test_unknown_paths_are_not_found(endpoint: HttpProcess, path: str) -> None:
    assert await send(endpoint, b"{}", {}, path=path) == 404


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"])
async def test_unsupported_http_methods_are_not_allowed(endpoint: HttpProcess, method: str) -> None:
    async with endpoint.http.request(method, endpoint.url) as response:
        assert response.status == 405
        assert response.headers["allow"] == "GET, POST, DELETE"


POST = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
GET = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
RAW = {
    "two hosts": POST + b"Host: evil.example\r\nContent-Length: 0\r\n\r\n",
    "the same host twice": POST + b"Host: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
    "two session ids": GET + b"Mcp-Session-Id: a\r\nMcp-Session-Id: b\r\n\r\n",
    "no host": b"POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    "a length and chunks": POST + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "no HTTP": b"hello\r\n\r\n",
    "a bad length": POST + b"Content-Length: -5\r\n\r\n",
    "a huge header": GET + b"X: " + b"x" * 200_000 + b"\r\n\r\n",
    "a broken name": GET + b"b\xc3\xa4d: x\r\n\r\n",
}


@pytest.mark.parametrize("what", RAW)
async def test_invalid_http_is_rejected(endpoint: HttpProcess, what: str) -> None:
    host, _, port = endpoint.origin.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(RAW[what])
    status = await asyncio.wait_for(reader.readline(), 20)
    writer.close()
    assert status.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), status


async def test_a_caller_that_disconnects_during_its_body_does_no_harm(endpoint: HttpProcess) -> None:
    host, _, port = endpoint.origin.removeprefix("http://").partition(":")
    for _ in range(20):
        _, writer = await asyncio.open_connection(host, int(port))
        head = (
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        writer.write(head)
        await writer.drain()
        writer.close()
    async with HttpCaller(endpoint, {}).post("initialize", HELLO) as response:
        assert response.status == 200
