"""Something in every view of the console: calls of all outcomes, tasks, timers, questions, logs, a broken server."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.callers.http_process import HttpCaller
from support.console.running_console import Console, puppet
from support.waiting import eventually

BOOKING = {
    "type": "object",
    "properties": {
        "guests": {"type": "integer", "title": "Guests", "minimum": 1, "maximum": 12, "default": 4},
        "time": {"type": "string", "title": "Time", "enum": ["18:00", "19:30", "21:00"], "default": "19:30"},
        "mail": {"type": "string", "title": "Confirm to", "format": "email", "description": "Nobody else sees it"},
        "window": {"type": "boolean", "title": "By the window", "default": True},
        "diets": {
            "type": "array",
            "title": "Diets",
            "items": {"anyOf": [{"const": "v", "title": "Vegetarian"}, {"const": "g", "title": "No gluten"}]},
        },
    },
    "required": ["guests", "time"],
}


def tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"name": name, "description": description, "inputSchema": schema}


FILES = {
    "tools/list": {
        "tools": [
            tool(
                "read_file",
                "Read a file as text.",
                path={"type": "string", "title": "Path", "description": "Relative to the root"},
                lines={"type": "integer", "title": "Lines", "minimum": 1, "default": 100},
            ),
            tool("write_file", "Write text to a file.", path={"type": "string"}, text={"type": "string"}),
            tool("book_table", "Book a table for lunch. Asks how many and when."),
            tool("log_in", "Log in with the browser."),
        ]
    }
}


def scene_servers(folder: Path) -> dict[str, Any]:
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return {
        "demo": {"command": sys.executable, "args": ["-m", "emceepee.demo"], "env": path},
        "files": puppet(folder, FILES),
        "broken": {"command": sys.executable, "args": ["-c", "raise SystemExit('no configuration found')"]},
    }


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


@asynccontextmanager
async def a_scene(console: Console) -> AsyncIterator[HttpCaller]:
    """Two callers at work. A task digs, a form, a link and a completion wait to be answered, a timer runs."""
    coder = await console.endpoint.caller(client="claude-code")
    script = await console.endpoint.caller(client="nightly-report", emceepee_connect="on-use")
    await _play(coder, script)
    try:
        yield coder
    finally:
        await coder.end()
        await script.end()


async def _play(coder: HttpCaller, script: HttpCaller) -> None:
    async def call(caller: HttpCaller, server: str, tool: str, wait: int | None = None, /, **args: Any) -> None:
        await caller.call("execute_tool", server=server, tool=tool, args=args, timeout_ms=wait)

    await asyncio.gather(
        call(coder, "demo", "add", a=2, b=40),
        call(script, "files", "read_file", path="notes/today.md", api_key="sk-123", result=said("Buy bread.")),
        call(coder, "demo", "dig", seconds=0.8, steps=4),
        call(script, "files", "write_file", error={"code": -32001, "message": "The disk is full."}),
    )
    await call(coder, "demo", "mumble", about="the weather")
    await coder.call("read_resource", server="demo", uri="note://today")
    await coder.call("get_prompt", server="demo", name="plan_dinner", arguments={"cuisine": "peruvian"})
    await coder.value("set_timer", duration_ms=600_000, message="Look at the build again")
    await call(coder, "demo", "dig", 0, seconds=120, steps=100)
    asked = {"message": "A table at Chez Demo: how many, and when?", "requestedSchema": BOOKING}
    link = {"mode": "url", "message": "Log in to Files", "url": "https://files.example/login", "elicitationId": "1"}
    await call(coder, "files", "book_table", ask={"method": "elicitation/create", "params": asked})
    await call(script, "files", "log_in", ask={"method": "elicitation/create", "params": link})
    await call(coder, "demo", "haiku", topic="proxies")

    async def is_all_asked() -> bool:
        forms, samples = await coder.value("get_elicitations"), await coder.value("get_sampling_requests")
        return len(forms["requests"]) == len(samples["requests"]) == 1

    await eventually(is_all_asked, what="the questions are asked")
