"""Canaries: no log, reply, event, span, page, or file contains a login's secrets, for any course of the login."""

import json
from pathlib import Path

import aiohttp

from support.callers.http_process import HttpCaller, Json, http_process, until
from support.console.feed_reader import an_open_feed
from support.console.http_browser import Browser
from support.system.authorization_server import AuthorizationServer, an_authorization_server

SECRET = "canary-client-secret"


class Listener:
    """A caller that keeps every reply."""

    def __init__(self, caller: HttpCaller) -> None:
        self._caller = caller
        self.replies: list[Json] = []

    async def call(self, tool: str, /, **arguments: object) -> Json:
        self.replies.append(reply := await self._caller.call(tool, **arguments))
        return reply

    async def status(self) -> str:
        (server,) = (await self.call("list_servers"))["structuredContent"]["servers"]
        return str(server["status"])

    async def is_connected(self) -> bool:
        return await self.status() == "connected"


async def test_secrets_of_a_login_appear_in_no_log_reply_event_span_page_or_file(tmp_path: Path) -> None:
    async with (
        an_authorization_server() as server,
        http_process("--log-level", "debug", state=tmp_path) as endpoint,
    ):
        person = Browser(endpoint.http, endpoint.origin)
        await person.come_in(endpoint.log)
        caller = Listener(await endpoint.caller())
        async with an_open_feed(endpoint.http, person) as feed:
            pages = await live_through_everything(caller, server, endpoint.http)
            await until(lambda: any("remove_server" in json.dumps(row) for row in feed.rows.values()), "it is all told")
            told = json.dumps([feed.sessions, feed.rows, feed.logs])
            details = [
                (await person.fetch("GET", f"/console/request?session={row['session']}&id={key}")).text
                for key, row in feed.rows.items()
            ]
        seen = {
            "replies": json.dumps(caller.replies),
            "log": "".join(endpoint.log),
            "console": told,
            "details": "".join(details),
            "pages": "".join(pages),
        }
    seen |= _files(tmp_path)
    secrets = {SECRET} | server.secrets
    assert len(secrets) >= 10
    assert "finish_authorization" in seen["details"]
    assert "***" in seen["details"]
    assert {(place, secret) for place, text in seen.items() for secret in secrets if secret in text} == set()


def _files(folder: Path) -> dict[str, str]:
    return {file.name: file.read_bytes().decode("latin-1") for file in folder.rglob("*") if file.is_file()}


async def live_through_everything(
    caller: Listener, server: AuthorizationServer, http: aiohttp.ClientSession
) -> list[str]:
    """A pasted address, a callback, a refresh, more rights, trouble, a logout; the pages that the browser showed."""
    server.needed["write"] = "all"
    oauth = {"client_id": "me", "client_secret": SECRET, "scopes": "some"}
    added = await caller.call("add_server", name="tracker", url=server.resource, oauth=oauth)
    async with http.get(added["structuredContent"]["server"]["authorizationUrl"], allow_redirects=False) as found:
        ended = found.headers["location"]
    await caller.call("finish_authorization", server="tracker", redirect_url=ended.partition("&state")[0])
    await caller.call(
        "finish_authorization", server="tracker", redirect_url=ended.partition("?")[2].replace("state=", "state=x")
    )
    await caller.call("finish_authorization", server="tracker", redirect_url=ended)
    await caller.call("execute_tool", server="tracker", tool="echo", args={})
    server.valid.clear()
    await caller.call("execute_tool", server="tracker", tool="echo", args={})
    await caller.call("execute_tool", server="tracker", tool="write", args={})
    pages = []
    for question in (await caller.call("get_elicitations"))["structuredContent"]["requests"]:
        for _ in range(2):  # the second time it is over
            async with http.get(question["url"]) as page:
                pages.append(await page.text())
    await until(lambda: len(server.calls) == 3, "the call went on")
    server.valid.clear()
    server.status = 503
    await caller.call("execute_tool", server="tracker", tool="echo", args={})
    await caller.call("get_server_status", server="tracker")
    await caller.call("await_activity", timeout_ms=0)
    await caller.call("remove_server", name="tracker")
    await until(lambda: bool(server.revoked), "the tokens were given back")
    return pages
