"""A task's cost in a model's context: find a tool among three hundred, call it on twenty items, combine the results.

Counted is what a model writes, the arguments of its calls, and what it reads, the content of the replies. `tools/list`
is paid for in both ways, and not counted.
"""

import json
import sys

from bench.contestants import EMCEEPEE, STDIO, emceepee
from bench.load.sample import WrongAnswer
from bench.load.stdio import StdioCallers
from bench.processes import ROOT, running
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import Era, Json

PART = "context"
BY_CALLS, BY_SCRIPT, SAVED = "list_tools and execute_tool", "code mode", "saved by code mode"
ITEMS = [f"INV-{number}" for number in range(1, 21)]
EXPECTED = {"open": sum(100 + number * 7 for number in range(1, 21) if number % 3 == 0)}
SERVER, TOOL = "erp", "billing_get_invoice"
FIND = 'from_all = await mcp.list_tools("erp", "invoice")\n[t["name"] for t in from_all if "billing" in t["name"]]'
RUN = f"""from servers import {SERVER}
found = await asyncio.gather(*[{SERVER}.{TOOL}(id=f"INV-{{n}}") for n in range(1, 21)])
{{"open": sum(one["total"] for one in found if one["status"] == "open")}}"""


class Conversation:
    """Calls of emceepee's tools, and how many bytes they were to a model."""

    def __init__(self, callers: StdioCallers) -> None:
        self._callers, self.bytes = callers, 0

    def has(self, tool: str) -> bool:
        return tool in {item["name"] for item in self._callers.ask("tools/list", {})["tools"]}

    def call(self, tool: str, /, **arguments: object) -> Json:
        result = self._callers.ask("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise WrongAnswer(f"{tool}: {result}")
        self.bytes += len(_text({"name": tool, "arguments": arguments}))
        self.bytes += sum(len(str(block.get("text", "")).encode()) for block in result["content"])
        return dict(result["structuredContent"])


def measure(settings: Settings, results: Results) -> None:
    if not settings.has(EMCEEPEE):
        return
    progress("the context that a task costs")
    servers: Json = {SERVER: {"command": sys.executable, "args": ["-m", "bench.backend.catalog"], "cwd": str(ROOT)}}
    spent = {name: _spent(servers, name) for name in (BY_CALLS, BY_SCRIPT)}
    for name, size in spent.items():
        results.add(PART, name, size, "B")
    results.add(PART, SAVED, (1 - spent[BY_SCRIPT] / spent[BY_CALLS]) * 100, "%")


def _spent(servers: Json, way: str) -> int:
    with running(emceepee(servers, STDIO), pipes=True) as child:
        callers = StdioCallers(child, Era.HANDSHAKE)
        callers.open()
        conversation = Conversation(callers)
        conversation.call("list_servers")
        conversation.bytes = 0  # so that neither way has the notice that the server was connected
        found = (_by_calls if way == BY_CALLS else _by_script)(conversation)
        if found != EXPECTED:
            raise WrongAnswer(f"{way}: {found}")
        return conversation.bytes


def _by_calls(conversation: Conversation) -> Json:
    """As a careful model does: summaries first, one tool in full, then call by call."""
    conversation.call("list_tools", server=SERVER, detail="summary")
    conversation.call("list_tools", server=SERVER, tool=f"^{TOOL}$")
    found = [conversation.call("execute_tool", server=SERVER, tool=TOOL, args={"id": item}) for item in ITEMS]
    return {"open": sum(one["total"] for one in found if one["status"] == "open")}


def _by_script(conversation: Conversation) -> Json:
    if conversation.has("codemode_search"):
        found = conversation.call("codemode_search", query="get a billing invoice", limit=5)
        if TOOL not in json.dumps(found):
            raise WrongAnswer(f"not found: {found}")
    else:
        _find_by_script(conversation)
    return dict(conversation.call("codemode_execute", code=RUN)["result"])


def _find_by_script(conversation: Conversation) -> None:
    names = conversation.call("codemode_execute", code=FIND)["result"]
    if TOOL not in names:
        raise WrongAnswer(f"not found: {names}")
    schema = f'(await mcp.list_tools("{SERVER}", "^{TOOL}$"))[0]["inputSchema"]["properties"]'
    conversation.call("codemode_execute", code=schema)


def _text(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
