"""The demo's tools: a struct of parameters whose docstring describes the tool, and one function each."""

import inspect
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.json import schema_components

from emceepee.clock import Clock, SystemClock
from emceepee.miniserver.server_conversation import LOGGED, PROGRESS, UPDATED, Channel, ServerConversation
from emceepee.miniserver.server_hello import CAPABILITY_OF, log_level
from emceepee.wire.json_rpc import ProtocolError, Request, modern_capabilities
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INTERNAL_ERROR

ELICIT, SAMPLE, LIST_CHANGED = (
    "elicitation/create",
    "sampling/createMessage",
    "notifications/resources/list_changed",
)
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
BOOKING_FORM: JsonObject = {
    "type": "object",
    "properties": {
        "guests": {"type": "integer", "title": "Guests", "minimum": 1, "maximum": 12},
        "time": {"type": "string", "title": "Time", "enum": ["18:00", "19:30", "21:00"]},
        "window": {"type": "boolean", "title": "By the window?", "default": False},
    },
    "required": ["guests", "time"],
}


class CannotAsk(Exception):
    """The client did not declare the capability for this question."""


class NotAnsweredYet(Exception):
    """The tool cannot continue before the client answers; a 2026-07-28 client then sends the whole call again."""

    def __init__(self, question: JsonObject) -> None:
        super().__init__(question["method"])
        self.result = {"resultType": "input_required", "inputRequests": {question["method"]: question}}


@dataclass(slots=True)
class World:
    """The demo's memory while it runs. A stdio process has one client, so the memory belongs to that client."""

    clock: Clock = field(default_factory=SystemClock)
    notes: dict[str, str] = field(default_factory=lambda: {"today": "Buy bread.\n"})
    subscribed: set[str] = field(default_factory=set)
    log_level: str = "info"


@dataclass(frozen=True, slots=True)
class DemoCall:
    """One call of a tool, with the means to send its client notifications and questions."""

    conversation: ServerConversation
    world: World
    request: Request
    channel: Channel

    @property
    def is_modern(self) -> bool:
        return modern_capabilities(self.request.params) is not None

    def notify(self, method: str, **params: Any) -> None:
        self.conversation.notify(method, params, self.request, self.channel)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Return the client's answer. Raises: CannotAsk, NotAnsweredYet, ProtocolError."""
        needed = CAPABILITY_OF[method]
        if needed not in self.conversation.capabilities_of(self.request, self.channel):
            raise CannotAsk(f"This client cannot be asked: it did not declare the {needed} capability.")
        question = {"method": method, "params": params}
        if not self.is_modern:
            answered = (await self.conversation.ask({method: question}, self.channel))[method]
            if isinstance(result := answered.get("result"), dict):
                return result
            raise ProtocolError(INTERNAL_ERROR, f"The client answered {method} with an error.", answered.get("error"))
        given = (self.request.params or {}).get("inputResponses")
        answer = given.get(method) if isinstance(given, dict) else None
        if not isinstance(answer, dict):
            raise NotAnsweredYet(question)
        return answer


class Add(Struct):
    """Add two numbers."""

    a: float
    b: float


class Dig(Struct):
    """Dig for treasure. Slow on purpose, and reports its progress."""

    seconds: Annotated[float, Meta(ge=0, le=3600, description="How long it takes in all")] = 3
    steps: Annotated[int, Meta(ge=1, le=1000, description="How often progress is reported")] = 5


class BookTable(Struct):
    """Book a table. Asks the user for guests and time with a form."""

    restaurant: str = "Chez Demo"


class Haiku(Struct):
    """Write a haiku. Asks the client's model for the words."""

    topic: str = "proxies"


class TouchNote(Struct, kw_only=True):
    """Write a note. The resource note://{name} changes, and with it the list of resources."""

    name: Annotated[str, Meta(pattern=r"^[a-z0-9-]+$")] = "today"
    text: str


class Mumble(Struct):
    """Write log lines: a debug, an info and a warning message of the protocol, and a line on stderr."""

    about: str = "nothing in particular"


async def add(params: Add, call: DemoCall) -> JsonObject:
    total = params.a + params.b
    return said(f"{params.a:g} + {params.b:g} = {total:g}", structured={"sum": total})


async def dig(params: Dig, call: DemoCall) -> JsonObject:
    for step in range(1, params.steps + 1):
        await call.world.clock.sleep(params.seconds / params.steps)
        call.notify(PROGRESS, progress=step, total=params.steps, message=f"layer {step} of {params.steps}")
    return said(f"Dug through {params.steps} layers in {params.seconds:g} s and found a teapot.")


async def book_table(params: BookTable, call: DemoCall) -> JsonObject:
    message = f"A table at {params.restaurant}: how many guests, and when?"
    answer = await call.ask(ELICIT, {"mode": "form", "message": message, "requestedSchema": BOOKING_FORM})
    content = answer.get("content")
    if answer.get("action") != "accept" or not isinstance(content, dict):
        return said(f"No table was booked at {params.restaurant}.", structured={"booked": False})
    place = " by the window" if content.get("window") else ""
    return said(
        f"Booked at {params.restaurant}: {content.get('guests')} guests at {content.get('time')}{place}.",
        structured={"booked": True, "restaurant": params.restaurant, **content},
    )


async def haiku(params: Haiku, call: DemoCall) -> JsonObject:
    wish = {"type": "text", "text": f"Write a haiku about {params.topic}."}
    answer = await call.ask(
        SAMPLE,
        {
            "messages": [{"role": "user", "content": wish}],
            "systemPrompt": "Three lines: five, seven and five syllables. Nothing else.",
            "maxTokens": 100,
        },
    )
    content = answer.get("content")
    block = content if isinstance(content, dict) else {}
    return said(f"{block.get('text', block.get('type'))}\n— {answer.get('model')}")


async def touch_note(params: TouchNote, call: DemoCall) -> JsonObject:
    uri, world = note_uri(params.name), call.world
    world.notes[params.name] = params.text
    if call.is_modern or uri in world.subscribed:  # a modern client that wants notifications has an open listen request
        call.notify(UPDATED, uri=uri)
    call.notify(LIST_CHANGED)
    return said(f"{uri} now has {len(params.text)} characters.")


async def mumble(params: Mumble, call: DemoCall) -> JsonObject:
    lines = {
        "debug": f"thinking about {params.about}",
        "info": f"still thinking about {params.about}",
        "warning": f"thought too long about {params.about}",
    }
    # A 2026-07-28 request specifies its own level; earlier clients set it once.
    lowest = log_level(call.request.params) if call.is_modern else call.world.log_level
    for level, text in lines.items():
        if lowest in LEVELS and LEVELS.index(level) >= LEVELS.index(lowest):
            call.notify(LOGGED, level=level, logger="demo", data=text)
    sys.stderr.write(f"demo: mumbling about {params.about}\n")
    sys.stderr.flush()
    return said(f"Mumbled about {params.about}.")


def note_uri(name: str) -> str:
    return f"note://{name}"


def said(text: str, *, structured: JsonObject | None = None, is_error: bool = False) -> JsonObject:
    result: JsonObject = {"content": [{"type": "text", "text": text}], "isError": is_error}
    return result if structured is None else result | {"structuredContent": structured}


@dataclass(frozen=True, slots=True)
class DemoTool:
    """A tool's declaration. Its name is its function's name in `TOOLS`."""

    params: type[Struct]
    work: Callable[[Any, DemoCall], Awaitable[JsonObject]]

    def listed(self) -> JsonObject:
        """Return the tool's entry in `tools/list`."""
        _, components = schema_components([self.params])
        schema = {key: value for key, value in components[self.params.__name__].items() if key != "description"}
        return {"name": self.work.__name__, "description": inspect.getdoc(self.params), "inputSchema": schema}


TOOLS = {
    tool.work.__name__: tool
    for tool in (
        DemoTool(Add, add),
        DemoTool(Dig, dig),
        DemoTool(BookTable, book_table),
        DemoTool(Haiku, haiku),
        DemoTool(TouchNote, touch_note),
        DemoTool(Mumble, mumble),
    )
}
