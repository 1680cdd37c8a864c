"""How a test drives a client program: a tool call per line on standard input, on standard output what came of it.

The first argument says where emceepee is: {"url"} or {"command", "args", "env"}. The first line out tells of the
connection.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

Call = tuple[str, dict[str, Any]]
PLACE: dict[str, Any] = json.loads(sys.argv[1])


async def next_call() -> Call | None:
    """The tool and its arguments; None when the test has no more."""
    line = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        return None
    asked = json.loads(line)
    return asked["tool"], asked["arguments"]


async def calls() -> AsyncIterator[Call]:
    while (call := await next_call()) is not None:
        yield call


def say(found: Any) -> None:
    print(json.dumps(found), flush=True)
