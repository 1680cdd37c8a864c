"""A server over HTTP whose answers to calls are large, and written before."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from aiohttp import web

from support.backends.http_backend import HELLO
from support.system.web_application import running_application


class _Answers:
    """To calls, by the tool."""

    def __init__(self, results: Mapping[str, str]) -> None:
        self.results = results

    async def serve(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        start = (await request.read())[:2000].decode()  # all of it would be read in the loop of the test
        found = re.search(r'"id":\s*(\d+|"[^"]*")', start)
        if found is None:
            return web.Response(status=202)
        if '"initialize"' in start:
            result = json.dumps(HELLO)
        elif '"tools/call"' in start:
            name = re.search(r'"name":\s*"(\w+)"', start)
            assert name is not None, start
            if name[1] == "slow":
                await asyncio.Event().wait()
            result = self.results[name[1]]
        else:
            result = '{"tools":[]}'
        body = f'{{"jsonrpc":"2.0","id":{found[1]},"result":{result}}}'.encode()
        return web.Response(body=body, content_type="application/json")


@asynccontextmanager
async def big_backend(results: Mapping[str, str]) -> AsyncIterator[str]:
    """Its address. `slow` is never answered."""
    application = web.Application(client_max_size=1 << 30)
    application.router.add_route("*", "/mcp", _Answers(results).serve)
    async with running_application(application, cancels_handlers=True) as port:
        yield f"http://127.0.0.1:{port}/mcp"
