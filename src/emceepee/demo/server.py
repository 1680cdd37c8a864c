"""The demo server: its tools, notes as resources, one prompt, and completion for both."""

from collections.abc import Callable

import msgspec

from emceepee import __version__
from emceepee.demo.tools import TOOLS, CannotAsk, DemoCall, NotAnsweredYet, World, note_uri, said
from emceepee.miniserver.server_conversation import Channel, ServerConversation
from emceepee.miniserver.server_hello import ServerHello
from emceepee.wire.json_rpc import ProtocolError, Request
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS, LATEST_HANDSHAKE_VERSION, METHOD_NOT_FOUND

NOTE_TEMPLATE = "note://{name}"
CUISINES = ("french", "georgian", "ghanaian", "italian", "indian", "japanese", "mexican", "peruvian", "thai")
DINNER: JsonObject = {
    "name": "plan_dinner",
    "description": "Plan a dinner for friends.",
    "arguments": [
        {"name": "cuisine", "description": "Can be completed", "required": True},
        {"name": "guests", "description": "How many"},
    ],
}
HELLO: JsonObject = {
    "protocolVersion": LATEST_HANDSHAKE_VERSION,
    "serverInfo": {"name": "emceepee-demo", "title": "emceepee demo", "version": __version__},
    "capabilities": {
        "tools": {},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {},
        "completions": {},
        "logging": {},
    },
    "instructions": (
        "A server to try a client or proxy with. dig is slow, book_table asks, haiku samples, mumble logs."
    ),
}


class DemoConversation(ServerConversation):
    """One client and its demo world."""

    def __init__(self, world: World | None = None) -> None:
        super().__init__(ServerHello(HELLO), name="demo")
        self._world = world or World()
        self._handlers: dict[str, Callable[[JsonObject], JsonObject]] = {
            "tools/list": lambda _: {"tools": [tool.listed() for tool in TOOLS.values()]},
            "resources/list": self._list_notes,
            "resources/templates/list": _list_templates,
            "resources/read": self._read_note,
            "resources/subscribe": lambda params: self._follow(params, is_wanted=True),
            "resources/unsubscribe": lambda params: self._follow(params, is_wanted=False),
            "prompts/list": lambda _: {"prompts": [DINNER]},
            "prompts/get": _get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
        }

    async def serve(self, request: Request, channel: Channel) -> None:
        params = request.params or {}
        if request.method == "tools/call":
            result = await self._call_tool(params, request, channel)
        elif (handler := self._handlers.get(request.method)) is not None:
            result = handler(params)
        else:
            raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {request.method[:100]}")
        self.send_result(request, result, channel)

    async def _call_tool(self, params: JsonObject, request: Request, channel: Channel) -> JsonObject:
        tool = TOOLS.get(str(params.get("name")))
        if tool is None:
            raise ProtocolError(INVALID_PARAMS, f"Unknown tool: {str(params.get('name'))[:100]}")
        call = DemoCall(self, self._world, request, channel)
        try:
            return await tool.work(msgspec.convert(params.get("arguments") or {}, tool.params), call)
        except NotAnsweredYet as question:
            return question.result
        except (msgspec.ValidationError, CannotAsk) as error:
            return said(str(error), is_error=True)

    def _list_notes(self, _: JsonObject) -> JsonObject:
        notes = self._world.notes.items()
        return {
            "resources": [
                {"uri": note_uri(name), "name": name, "mimeType": "text/plain", "size": len(text.encode())}
                for name, text in notes
            ]
        }

    def _read_note(self, params: JsonObject) -> JsonObject:
        uri = _text(params, "uri")
        text = self._world.notes.get(uri.removeprefix("note://"))
        if text is None:
            raise ProtocolError(INVALID_PARAMS, f"There is no {uri[:200]}; touch_note writes notes.")
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}

    def _follow(self, params: JsonObject, *, is_wanted: bool) -> JsonObject:
        uri = _text(params, "uri")
        if is_wanted:
            self._world.subscribed.add(uri)
        else:
            self._world.subscribed.discard(uri)
        return {}

    def _complete(self, params: JsonObject) -> JsonObject:
        argument = params.get("argument")
        if not isinstance(argument, dict):
            raise ProtocolError(INVALID_PARAMS, "argument: an object with name and value is needed.")
        choices = {"cuisine": CUISINES, "name": tuple(self._world.notes)}.get(_text(argument, "name"), ())
        values = [choice for choice in choices if choice.startswith(_text(argument, "value").lower())]
        return {"completion": {"values": values, "total": len(values), "hasMore": False}}

    def _set_level(self, params: JsonObject) -> JsonObject:
        self._world.log_level = _text(params, "level")
        return {}


def _list_templates(_: JsonObject) -> JsonObject:
    template = {"uriTemplate": NOTE_TEMPLATE, "name": "note", "description": "A note by its name."}
    return {"resourceTemplates": [template]}


def _get_prompt(params: JsonObject) -> JsonObject:
    given = params.get("arguments") or {}
    if params.get("name") != DINNER["name"] or not isinstance(given, dict) or "cuisine" not in given:
        raise ProtocolError(INVALID_PARAMS, f"The only prompt is {DINNER['name']}, and it needs a cuisine.")
    words = f"Plan a {given['cuisine']} dinner for {given.get('guests', '4')} guests: three courses, one sentence each."
    message = {"role": "user", "content": {"type": "text", "text": words}}
    return {"description": DINNER["description"], "messages": [message]}


def _text(params: JsonObject, key: str) -> str:
    """Raises: ProtocolError."""
    if not isinstance(value := params.get(key), str):
        raise ProtocolError(INVALID_PARAMS, f"{key}: a string is needed.")
    return value
