"""A conversation with emceepee over stdio, as a client has it: `make serve` runs this.

The bundled demo server is added, used and removed again. Each step is one function; to show something new, write
another and put it into STEPS. In what is printed, → is the client's call, ← the reply, · progress, and ! what the reply
tells besides its result.
"""

import asyncio
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, TextContent

PATIENCE = 60.0  # seconds for the whole conversation; it takes a few
WIDTH = min(shutil.get_terminal_size((100, 24)).columns, 120)
LINES_SHOWN = 3  # of one message; the rest is cut with a mark
HAS_COLOR = sys.stdout.isatty() and "NO_COLOR" not in os.environ
BOLD, DIM, CYAN, GREEN, YELLOW = "1", "2", "36", "32", "33"

HAIKU = "One line to the world,\nmany servers behind it.\nNobody waits long."

# emceepee gives its servers a small part of its own environment. This lets the demo run from a source tree.
SOURCE_TREE = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}


class Talk:
    """The client's side of the conversation, printed as it goes."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call one of emceepee's tools, show both sides, and return the structured part of the result."""
        show("→", f"{tool} {spaced(arguments)}" if arguments else tool, CYAN)
        result = await self.client.call_tool(tool, arguments, progress_callback=show_progress)
        own, notices = parts_of(result)
        show("←", own, GREEN)
        for notice in notices:
            show("!", notice, YELLOW)
        if result.is_error:
            raise SystemExit(f"{tool} failed")
        structured = result.structured_content
        return structured if isinstance(structured, dict) else {}


async def meet(talk: Talk) -> None:
    """Meet emceepee. To its client it is one server with a fixed set of tools, however many servers are behind it."""
    tools = (await talk.client.list_tools()).tools
    show("→", "tools/list", CYAN)
    show("←", f"{len(tools)} tools: {', '.join(tool.name for tool in tools)}", GREEN)


async def add_a_server(talk: Talk) -> None:
    """Add a server while the conversation runs. No restart, no configuration file. This one is a child process."""
    environment = {"env": SOURCE_TREE} if SOURCE_TREE else {}
    await talk.call(
        "add_server", name="demo", command=sys.executable, args=["-P", "-m", "emceepee.demo"], **environment
    )


async def look_around(talk: Talk) -> None:
    """Look around. The short list of tools first, so that a model spends no context on schemas it does not need."""
    await talk.call("list_servers")
    await talk.call("list_tools", server="demo", detail="names")
    await talk.call("list_tools", server="demo", tool="^add$")


async def call_a_tool(talk: Talk) -> None:
    """Call a tool. The result is the server's own, every field as it was sent."""
    await talk.call("execute_tool", server="demo", tool="add", args={"a": 2, "b": 40})


async def call_a_slow_tool(talk: Talk) -> None:
    """Call a slow tool. The progress it reports reaches the client while it waits."""
    await talk.call("execute_tool", server="demo", tool="dig", args={"seconds": 0.8, "steps": 4})


async def let_a_call_become_a_task(talk: Talk) -> None:
    """Do not wait. The call goes on as a task, and the client does something else. Every reply tells what is new."""
    digging = {"seconds": 1, "steps": 3}
    reply = await talk.call("execute_tool", server="demo", tool="dig", args=digging, timeout_ms=100)
    await talk.call("execute_tool", server="demo", tool="add", args={"a": 19, "b": 4})
    await talk.call("get_task_result", task_id=reply["proxy_task"]["task_id"])


async def answer_a_question(talk: Talk) -> None:
    """Answer a question. A server asks the user for something during a call. The call becomes a task at once, every
    reply lists the open question, and the answer is checked before it is forwarded."""
    reply = await talk.call("execute_tool", server="demo", tool="book_table", args={"restaurant": "Chez Demo"})
    (question,) = (await talk.call("get_elicitations"))["requests"]
    table = {"guests": 4, "time": "19:30", "window": True}
    await talk.call("respond_to_elicitation", request_id=question["requestId"], action="accept", content=table)
    await talk.call("get_task_result", task_id=reply["proxy_task"]["task_id"])


async def lend_a_model(talk: Talk) -> None:
    """Lend a model. A server asks for a completion, and a model writes it."""
    reply = await talk.call("execute_tool", server="demo", tool="haiku", args={"topic": "proxies"})
    (request,) = (await talk.call("get_sampling_requests"))["requests"]
    completion = {"role": "assistant", "content": HAIKU, "model": "a poet", "stop_reason": "endTurn"}
    await talk.call("respond_to_sampling", request_id=request["requestId"], **completion)
    await talk.call("get_task_result", task_id=reply["proxy_task"]["task_id"])


async def wait_for_whatever_happens(talk: Talk) -> None:
    """Wait for the next event. A task works and a timer runs; the first one to finish ends the wait."""
    await talk.call("execute_tool", server="demo", tool="dig", args={"seconds": 1, "steps": 3}, timeout_ms=0)
    await talk.call("set_timer", duration_ms=500, message="Tea is ready.")
    is_working = True
    while is_working:
        report = await talk.call("await_activity", timeout_ms=10_000)
        for event in [event for server in report["events"] for event in server["events"]]:
            show("!", f"{event['type']} ({event['server']}) {spaced(event['data'])}", YELLOW)
        is_working = bool(report["pending_server"])


async def make_a_mistake(talk: Talk) -> None:
    """Make a mistake. An error has a code for programs and a sentence that says what to do next."""
    arguments = {"server": "demo", "tool": "ad"}
    show("→", f"execute_tool {spaced(arguments)}", CYAN)
    result = await talk.client.call_tool("execute_tool", arguments)
    error = (result.structured_content or {})["error"]
    show("←", f"{error['code']}: {error['message']}", GREEN)


async def read_a_resource(talk: Talk) -> None:
    """Read a resource. A client that supports only tools can use the rest of the protocol as well."""
    await talk.call("list_resources", server="demo")
    await talk.call("read_resource", server="demo", uri="note://today")


async def get_a_prompt(talk: Talk) -> None:
    """Get a prompt, with a little help for one of its arguments."""
    completed = await talk.call("complete", server="demo", ref="plan_dinner", argument="cuisine", value="ge")
    arguments = {"cuisine": completed["values"][0]}
    await talk.call("get_prompt", server="demo", name="plan_dinner", arguments=arguments)


async def read_the_log(talk: Talk) -> None:
    """Read a server's log. emceepee stores its stderr even when nobody watches."""
    await talk.call("execute_tool", server="demo", tool="mumble", args={"about": "the weather"})
    await talk.call("get_logs", server="demo", sources=["stderr"])


async def remove_the_server(talk: Talk) -> None:
    """Remove the server. When the reply is there, its process is gone, and everything it started."""
    await talk.call("remove_server", name="demo")
    await talk.call("list_servers")


Step = Callable[[Talk], Awaitable[None]]
STEPS: tuple[Step, ...] = (
    meet,
    add_a_server,
    look_around,
    call_a_tool,
    call_a_slow_tool,
    let_a_call_become_a_task,
    answer_a_question,
    lend_a_model,
    wait_for_whatever_happens,
    make_a_mistake,
    read_a_resource,
    get_a_prompt,
    read_the_log,
    remove_the_server,
)


async def main() -> None:
    emceepee = StdioServerParameters(
        command=sys.executable, args=["-P", "-m", "emceepee", "--log-level", "warn"], env=SOURCE_TREE
    )
    async with asyncio.timeout(PATIENCE), Client(emceepee) as client:
        print(color(f"\nA conversation with emceepee (MCP {client.protocol_version})", BOLD))
        for number, step in enumerate(STEPS, start=1):
            title, _, explanation = " ".join((step.__doc__ or "").split()).partition(". ")
            print("\n" + color(f"{number}. {title.rstrip('.')}", BOLD))
            if explanation:
                print(textwrap.fill(explanation, WIDTH, initial_indent="   ", subsequent_indent="   "))
            await step(Talk(client))
    print(f"\n{color('Now in your own client', BOLD)}\n   Put this into its MCP configuration and restart it:\n")
    program = str(Path(sys.executable).with_name("emceepee"))
    configuration = json.dumps({"mcpServers": {"emceepee": {"command": program}}}, indent=2)
    print(textwrap.indent(configuration, "   "))
    print(
        f'\n   Then ask: "Use emceepee to add the server `{sys.executable} -P -m emceepee.demo` and dig for treasure."'
    )


def parts_of(result: CallToolResult) -> tuple[str, list[str]]:
    """Return a result for reading, and the notices after it. JSON is wrapped, and omitted if there is a sentence."""
    sentences, values, notices = [], [], []
    for block in result.content:
        if isinstance(block, TextContent):
            try:
                value = json.loads(block.text[block.text.find("\n{") + 1 :])  # a notice has a line of words first
            except ValueError:
                sentences.append(block.text)
                continue
            notice = notice_of(value)
            notices += notice
            values += [] if notice else [spaced(value)]
    return " ".join(sentences or values), notices


def notice_of(value: Any) -> list[str]:
    """Return a block's notices: events and open questions. Empty if it is not a block of notices."""
    if not isinstance(value, dict):
        return []
    lines = []
    if events := value.get("events_since_last_response"):
        lines.append("news: " + ", ".join(f"{event['type']} ({event['server']})" for event in events))
    if waiting := value.get("pending_client_action"):
        asking = [item["server"] for kind in ("elicitations", "sampling_requests") for item in waiting[kind]]
        lines += [f"{server} waits for an answer" for server in asking]
    return lines


async def show_progress(progress: float, total: float | None, message: str | None) -> None:
    share = f"{progress / total:4.0%}" if total else f"{progress:g}"
    show("·", f"{share} {message or ''}", DIM)


def show(mark: str, text: str, shade: str) -> None:
    """One message behind its mark, over a few lines if it is long."""
    room = WIDTH - 6
    lines = textwrap.wrap(text, room, max_lines=LINES_SHOWN, placeholder=" …", break_on_hyphens=False)
    print(f"   {color(mark, shade)} " + "\n     ".join(lines), flush=True)


def color(text: str, shade: str) -> str:
    return f"\x1b[{shade}m{text}\x1b[0m" if HAS_COLOR else text


def spaced(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    asyncio.run(main())
