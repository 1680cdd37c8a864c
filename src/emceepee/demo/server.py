"""The demo server: its tools, notes as resources, one prompt, and completion for both."""

import inspect
import warnings
from typing import Any

import mcp_types as types
from mcp.server import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from pydantic import ValidationError

from emceepee import __version__
from emceepee.demo.asking import CannotAsk, Context, Unanswered
from emceepee.demo.tools import TOOLS, Call, World, note_uri, said

INSTRUCTIONS = "A server to try a client or proxy with. dig is slow, book_table asks, haiku samples, mumble logs."
NOTE_TEMPLATE = "note://{name}"
CUISINES = ("french", "georgian", "ghanaian", "italian", "indian", "japanese", "mexican", "peruvian", "thai")
DINNER = types.Prompt(
    name="plan_dinner",
    description="Plan a dinner for friends.",
    arguments=[
        types.PromptArgument(name="cuisine", description="Can be completed", required=True),
        types.PromptArgument(name="guests", description="How many"),
    ],
)
Nothing = types.PaginatedRequestParams | None


async def serve_stdio() -> None:
    """Serve one client until its input ends."""
    server = build_server(World())
    options = server.create_initialization_options(NotificationOptions(resources_changed=True))
    async with stdio_server() as (read, write):
        await server.run(read, write, options)


def build_server(world: World) -> Server[Any]:
    """A server that lives in `world`."""
    offer = Offer(world)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)  # log levels: deprecated, and still to be carried
        return Server(
            "emceepee-demo",
            version=__version__,
            title="emceepee demo",
            instructions=INSTRUCTIONS,
            on_list_tools=offer.list_tools,
            on_call_tool=offer.call_tool,
            on_list_resources=offer.list_resources,
            on_list_resource_templates=offer.list_templates,
            on_read_resource=offer.read_resource,
            on_subscribe_resource=offer.subscribe,
            on_unsubscribe_resource=offer.unsubscribe,
            on_subscriptions_listen=ListenHandler(world.bus),
            on_list_prompts=offer.list_prompts,
            on_get_prompt=offer.get_prompt,
            on_completion=offer.complete,
            on_set_logging_level=offer.set_level,
        )


class Offer:
    """The handlers of one server."""

    def __init__(self, world: World) -> None:
        self._world = world

    async def list_tools(self, ctx: Context, params: Nothing) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[
                types.Tool(name=name, description=inspect.getdoc(model), input_schema=model.model_json_schema())
                for name, (model, _) in TOOLS.items()
            ]
        )

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        if params.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        model, verb = TOOLS[params.name]
        try:
            arguments = model.model_validate(params.arguments or {})
            return await verb(arguments, Call(ctx=ctx, request=params, world=self._world))
        except Unanswered as question:
            return question.result
        except (ValidationError, CannotAsk) as error:
            return said(str(error), is_error=True)

    async def list_resources(self, ctx: Context, params: Nothing) -> types.ListResourcesResult:
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=note_uri(name), name=name, mime_type="text/plain", size=len(text.encode()))
                for name, text in self._world.notes.items()
            ]
        )

    async def list_templates(self, ctx: Context, params: Nothing) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(uri_template=NOTE_TEMPLATE, name="note", description="A note by its name.")
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        text = self._world.notes.get(params.uri.removeprefix("note://"))
        if text is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no {params.uri}; touch_note writes notes.")
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self._world.subscribed.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        self._world.subscribed.discard(params.uri)
        return types.EmptyResult()

    async def list_prompts(self, ctx: Context, params: Nothing) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[DINNER])

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        given = params.arguments or {}
        if params.name != DINNER.name or "cuisine" not in given:
            raise MCPError(types.INVALID_PARAMS, f"The only prompt is {DINNER.name}, and it needs a cuisine.")
        words = (
            f"Plan a {given['cuisine']} dinner for {given.get('guests', '4')} guests: three courses, one sentence each."
        )
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=words))
        return types.GetPromptResult(description=DINNER.description, messages=[message])

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        choices = {"cuisine": CUISINES, "name": tuple(self._world.notes)}.get(params.argument.name, ())
        values = [choice for choice in choices if choice.startswith(params.argument.value.lower())]
        return types.CompleteResult(completion=types.Completion(values=values, total=len(values), has_more=False))

    async def set_level(self, ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        self._world.log_level = params.level
        return types.EmptyResult()
