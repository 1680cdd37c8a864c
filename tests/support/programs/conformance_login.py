"""emceepee as the client under the suite's OAuth scenarios: every login goes through emceepee's tools, and this program
plays the person. It opens every address that a person is asked to open, and agrees.

The suite starts it with the address of its server as the last argument. A running emceepee is named in EMCEEPEE_URL.
"""

import asyncio
import json
import os
import sys
from typing import Any
from uuid import uuid4

import aiohttp

from support.callers.http_process import HttpCaller, HttpProcess

CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"  # which the suite's server takes for ours
BOUND = 25.0
Json = dict[str, Any]


def settings_for(scenario: str, context: Json) -> Json:
    """Return the settings that a user would configure for a server of that kind."""
    found = {name: context[name] for name in ("client_id", "client_secret") if context.get(name)}
    if "cimd" in scenario:
        found["client_metadata_url"] = CLIENT_DOCUMENT
    if "client-credentials" in scenario:
        found["grant"] = "client_credentials"
    if context.get("private_key_pem"):
        found |= {"private_key": context["private_key_pem"], "signing_algorithm": context["signing_algorithm"]}
    if "dpop" in scenario:
        found["dpop"] = True
    if "wif" in scenario:
        found |= {"grant": "jwt_bearer", "assertion": context["valid_jwt"]}
    if "enterprise" in scenario:
        provider = {name: context[f"idp_{name}"] for name in ("token_endpoint", "client_id", "id_token")}
        found |= {"grant": "enterprise", "identity_provider": provider}
    return found


class Person:
    """Has a browser."""

    def __init__(self, caller: HttpCaller, http: aiohttp.ClientSession, server: str) -> None:
        self._caller, self._http, self._server = caller, http, server
        self._opened: set[str] = set()

    async def run(self, url: str, settings: Json) -> None:
        oauth = {"oauth": settings} if settings else {}
        await self._caller.value("add_server", name=self._server, url=url, **oauth)
        await self._until_connected()
        for tool in (await self._caller.value("list_tools", server=f"^{self._server}$"))["tools"]:
            await self._execute(tool["name"])

    async def _until_connected(self) -> None:
        async with asyncio.timeout(BOUND):
            while (status := await self._status()) in ("authorizing", "connecting"):
                await self._log_in()
        if status != "connected":
            raise SystemExit(f"the server is {status}")

    async def _status(self) -> str:
        listed = (await self._caller.value("list_servers"))["servers"]
        return next(str(server["status"]) for server in listed if server["name"] == self._server)

    async def _execute(self, tool: str) -> None:
        result = await self._caller.call("execute_tool", server=self._server, tool=tool, args={})
        while task := (result.get("structuredContent") or {}).get("proxy_task"):
            await self._log_in()
            result = await self._caller.call("get_task_result", task_id=task["task_id"], timeout_ms=300)
            if (result.get("structuredContent") or {}).get("error", {}).get("code") == "TOOL_ERR_TIMEOUT":
                result = {"structuredContent": {"proxy_task": task}}
        if result.get("isError"):
            raise SystemExit(f"{tool} failed: {json.dumps(result)[:1000]}")

    async def _log_in(self) -> None:
        for question in (await self._caller.value("get_elicitations"))["requests"]:
            if question["server"] == self._server and question["url"] not in self._opened:
                self._opened.add(question["url"])
                async with self._http.get(question["url"]) as page:
                    await page.read()


async def main() -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    server = f"suite-{uuid4().hex[:8]}"
    async with aiohttp.ClientSession() as http:
        caller = await HttpProcess(None, os.environ["EMCEEPEE_URL"], http).caller()
        try:
            await Person(caller, http, server).run(sys.argv[-1], settings_for(scenario, context))
        finally:
            await caller.call("remove_server", name=server)
            await caller.end()


if __name__ == "__main__":
    asyncio.run(main())
