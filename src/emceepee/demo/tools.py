"""The demo's tools: a parameter model whose docstring describes the tool, and one function each."""

import sys
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import mcp_types as types
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning
from pydantic import BaseModel, Field

from emceepee.clock import Clock, SystemClock
from emceepee.demo.asking import Context, elicit, is_modern, sample

LEVELS: tuple[types.LoggingLevel, ...] = (
    *("debug", "info", "notice", "warning"),
    *("error", "critical", "alert", "emergency"),
)
BOOKING_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "guests": {"type": "integer", "title": "Guests", "minimum": 1, "maximum": 12},
        "time": {"type": "string", "title": "Time", "enum": ["18:00", "19:30", "21:00"]},
        "window": {"type": "boolean", "title": "By the window?", "default": False},
    },
    "required": ["guests", "time"],
}


@dataclass(slots=True)
class World:
    """What the demo remembers while it runs. On stdio there is one client, so it is that client's world."""

    clock: Clock = field(default_factory=SystemClock)
    notes: dict[str, str] = field(default_factory=lambda: {"today": "Buy bread.\n"})
    subscribed: set[str] = field(default_factory=set)
    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    log_level: types.LoggingLevel = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a tool, and where it happens."""

    ctx: Context
    request: types.CallToolRequestParams
    world: World


class Add(BaseModel):
    """Add two numbers."""

    a: float
    b: float


class Dig(BaseModel):
    """Dig for treasure. Slow on purpose, and reports its progress."""

    seconds: float = Field(3, ge=0, le=3600, description="How long it takes in all")
    steps: int = Field(5, ge=1, le=1000, description="How often progress is reported")


class BookTable(BaseModel):
    """Book a table. Asks the user for guests and time with a form."""

    restaurant: str = "Chez Demo"


class Haiku(BaseModel):
    """Write a haiku. Asks the client's model for the words."""

    topic: str = "proxies"


class TouchNote(BaseModel):
    """Write a note. The resource note://{name} changes, and with it the list of resources."""

    name: str = Field("today", pattern=r"^[a-z0-9-]+$")
    text: str


class Mumble(BaseModel):
    """Write log lines: a debug, an info and a warning message of the protocol, and a line on stderr."""

    about: str = "nothing in particular"


async def add(params: Add, call: Call) -> types.CallToolResult:
    total = params.a + params.b
    return said(f"{params.a:g} + {params.b:g} = {total:g}", structured={"sum": total})


async def dig(params: Dig, call: Call) -> types.CallToolResult:
    for step in range(1, params.steps + 1):
        await call.world.clock.sleep(params.seconds / params.steps)
        message = f"layer {step} of {params.steps}"
        await call.ctx.session.report_progress(step, params.steps, message)
    return said(f"Dug through {params.steps} layers in {params.seconds:g} s and found a teapot.")


async def book_table(params: BookTable, call: Call) -> types.CallToolResult:
    message = f"A table at {params.restaurant}: how many guests, and when?"
    form = types.ElicitRequestFormParams(message=message, requested_schema=BOOKING_FORM)
    answer = await elicit(call.ctx, call.request, form)
    if answer.action != "accept" or answer.content is None:
        return said(f"No table was booked at {params.restaurant}.", structured={"booked": False})
    booking = {"booked": True, "restaurant": params.restaurant, **answer.content}
    place = " by the window" if answer.content.get("window") else ""
    return said(
        f"Booked at {params.restaurant}: {answer.content.get('guests')} guests at {answer.content.get('time')}{place}.",
        structured=booking,
    )


async def haiku(params: Haiku, call: Call) -> types.CallToolResult:
    prompt = types.TextContent(type="text", text=f"Write a haiku about {params.topic}.")
    wish = types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=prompt)],
        system_prompt="Three lines: five, seven and five syllables. Nothing else.",
        max_tokens=100,
    )
    answer = await sample(call.ctx, call.request, wish)
    words = answer.content.text if isinstance(answer.content, types.TextContent) else f"({answer.content.type})"
    return said(f"{words}\n— {answer.model}")


async def touch_note(params: TouchNote, call: Call) -> types.CallToolResult:
    uri, world, session = note_uri(params.name), call.world, call.ctx.session
    world.notes[params.name] = params.text
    if is_modern(call.ctx):  # who wants to know has a subscriptions/listen open
        await world.bus.publish(ResourceUpdated(uri=uri))
        await world.bus.publish(ResourcesListChanged())
    else:
        if uri in world.subscribed:
            await session.send_resource_updated(uri)
        await session.send_resource_list_changed()
    return said(f"{uri} now has {len(params.text)} characters.")


async def mumble(params: Mumble, call: Call) -> types.CallToolResult:
    lines: dict[types.LoggingLevel, str] = {
        "debug": f"thinking about {params.about}",
        "info": f"still thinking about {params.about}",
        "warning": f"thought too long about {params.about}",
    }
    for level, text in lines.items():
        await _log(call, level, text)
    sys.stderr.write(f"demo: mumbling about {params.about}\n")
    sys.stderr.flush()
    return said(f"Mumbled about {params.about}.")


async def _log(call: Call, level: types.LoggingLevel, text: str) -> None:
    # A 2026-07-28 request names its own level, and the SDK obeys it; before that, it is set once and ours to obey.
    if not is_modern(call.ctx) and LEVELS.index(level) < LEVELS.index(call.world.log_level):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)  # deprecated, and still to be carried by a proxy
        await call.ctx.session.send_log_message(level, text, "demo", related_request_id=call.ctx.request_id)


def note_uri(name: str) -> str:
    return f"note://{name}"


def said(text: str, *, structured: dict[str, Any] | None = None, is_error: bool = False) -> types.CallToolResult:
    block = types.TextContent(type="text", text=text)
    return types.CallToolResult(content=[block], structured_content=structured, is_error=is_error)


Verb = Callable[[Any, Call], Awaitable[types.CallToolResult]]
TOOLS: dict[str, tuple[type[BaseModel], Verb]] = {
    "add": (Add, add),
    "dig": (Dig, dig),
    "book_table": (BookTable, book_table),
    "haiku": (Haiku, haiku),
    "touch_note": (TouchNote, touch_note),
    "mumble": (Mumble, mumble),
}
