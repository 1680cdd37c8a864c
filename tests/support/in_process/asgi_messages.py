"""Requests to the console without a socket: what is asked, and what was answered."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emceepee.console.console_request import ConsoleRequest
from emceepee.web.asgi import Scope

PAGES = {
    "index.html": '<link rel="icon" href="{{assets}}/icon.svg"><script src="{{assets}}/main.js"></script>',
    "login.html": '<p>{{message}}</p><form method="post"><input name="token"></form>',
    "main.js": "document.title = 'emceepee';",
    "icon.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
}


@dataclass
class Answered:
    """One response, as it was sent."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_whole: bool = False

    async def send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            assert not self.status, "a response begins once"
            self.status = message["status"]
            pairs = [(name.decode(), text.decode()) for name, text in message["headers"]]
            self.headers = dict(pairs)
            assert len(pairs) == len(self.headers), f"a header is there twice: {pairs}"
        else:
            self.body += message.get("body", b"")
            self.is_whole = not message.get("more_body", False)

    @property
    def error(self) -> dict[str, Any]:
        return dict(json.loads(self.body)["error"])


def raw_headers(headers: dict[str, str]) -> dict[bytes, bytes]:
    """As a server gives them. Names are written with underscores."""
    return {name.replace("_", "-").encode(): text.encode("latin-1") for name, text in headers.items()}


def asked(method: str, path: str, query: str = "") -> Scope:
    return {"type": "http", "method": method, "path": path, "query_string": query.encode(), "headers": []}


async def hung_up() -> dict[str, Any]:
    return {"type": "http.disconnect"}


@asynccontextmanager
async def a_console_request(*, path: str, **headers: str) -> AsyncIterator[tuple[ConsoleRequest, Answered]]:
    """One GET of someone whom nobody knows; it must be answered."""
    answered = Answered()
    yield (
        ConsoleRequest(
            principal=None, path=path, query={}, headers=raw_headers(headers), receive=hung_up, send=answered.send
        ),
        answered,
    )
    assert answered.is_whole


def a_page_folder(folder: Path) -> Path:
    """The least that a console needs to be served."""
    for name, text in PAGES.items():
        (folder / name).write_text(text, "utf-8")
    return folder
