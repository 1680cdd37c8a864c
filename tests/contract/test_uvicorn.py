"""The private parts of uvicorn that the server uses: a release that changes one of them fails here."""

import ast
import inspect
from hashlib import sha256
from pathlib import Path

import pytest
import uvicorn
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

# A digest of the source of each part. `server_connection.py` repeats the body of three methods with changes of its own
# (`on_header`, `on_body`, `on_response_complete`), extends others, and reads attributes that the rest sets.
PARTS = {
    (HttpToolsProtocol, "__init__"): "4f08999410347141",
    (HttpToolsProtocol, "connection_made"): "6efb565ff3d36b91",
    (HttpToolsProtocol, "connection_lost"): "c91a4c9bf2e29c55",
    (HttpToolsProtocol, "eof_received"): "5652627579a02369",
    (HttpToolsProtocol, "on_message_begin"): "96d377fdc7c2baef",
    (HttpToolsProtocol, "on_url"): "37be44e962b04ca8",
    (HttpToolsProtocol, "on_header"): "65d62c044f61fdbd",
    (HttpToolsProtocol, "on_headers_complete"): "1ea8589acfad92d8",
    (HttpToolsProtocol, "on_body"): "dba9c32aeba35b6a",
    (HttpToolsProtocol, "on_message_complete"): "1fbad42dc31fc01f",
    (HttpToolsProtocol, "on_response_complete"): "64e254f28e389e76",
    (HttpToolsProtocol, "_start_asgi_task"): "9c08c2571ae9b038",
    (HttpToolsProtocol, "shutdown"): "d7351fa33f00d430",
    (HttpToolsProtocol, "pause_writing"): "17a8fd215d96a13c",
    (HttpToolsProtocol, "resume_writing"): "7844bbaa8cceb1ef",
    (RequestResponseCycle, ""): "e67d470d435dcc1c",
    (FlowControl, ""): "126debcdaa894c83",
    (ServerState, ""): "f2260fbf10154746",
    (uvicorn.Server, "serve"): "112ef41af52167e3",
    (uvicorn.Server, "_serve"): "4575b7a50adfede8",
    (uvicorn.Server, "startup"): "2aa1d70a244bfcf2",
    (uvicorn.Server, "main_loop"): "afccb353a119333f",
    (uvicorn.Server, "on_tick"): "60ea49b06ccf68c1",
    (uvicorn.Server, "shutdown"): "9b33c50562992b1e",
    (uvicorn.Server, "_wait_tasks_to_complete"): "17209be1e991445d",
    (uvicorn.Server, "capture_signals"): "e1bbcd4770d1c887",
    (uvicorn.Server, "handle_exit"): "553276efa26e09ea",
}


def name_of(part: tuple[type, str]) -> str:
    owner, method = part
    return f"{owner.__name__}.{method}" if method else owner.__name__


def digest(part: tuple[type, str]) -> str:
    """Return the digest of a part's source, or an empty string if uvicorn no longer has it.

    The source comes from uvicorn's file, because sse_starlette replaces `Server.handle_exit` when a test imports it.
    """
    owner, method = part
    source = Path(inspect.getfile(owner)).read_text("utf-8")
    found = [node for node in ast.parse(source).body if getattr(node, "name", "") == owner.__name__]
    if method:
        found = [
            node
            for each in found
            if isinstance(each, ast.ClassDef)
            for node in each.body
            if getattr(node, "name", "") == method
        ]
    if not found:
        return ""
    decorators = getattr(found[0], "decorator_list", [])
    first = min(node.lineno for node in (found[0], *decorators))
    lines = source.splitlines(keepends=True)[first - 1 : found[0].end_lineno]
    return sha256("".join(lines).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("part", "expected"), PARTS.items(), ids=lambda value: name_of(value) if isinstance(value, tuple) else ""
)
def test_the_installed_uvicorn_has_the_private_parts_that_the_server_uses(
    part: tuple[type, str], expected: str
) -> None:
    assert digest(part) == expected, (
        f"uvicorn {uvicorn.__version__} changed {name_of(part)}. Compare it with the previous release, adapt "
        "server_connection.py and uvicorn_server.py in src/emceepee/server/http, and then update the digest here."
    )
