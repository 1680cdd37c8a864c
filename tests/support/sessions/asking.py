"""Scripted backends that ask something, calls that became tasks, and replies taken apart."""

import asyncio
from typing import Any

from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked, ScriptedBackend
from support.fakes.clock import settle
from support.sessions.replies import notice_in, told_events
from support.sessions.scene import BOUND, Scene

NAME_FORM: JsonObject = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def elicit(
    backend: ScriptedBackend, message: str = "Your name?", *, origin: object | None = None, **params: Any
) -> "asyncio.Task[JsonObject]":
    """The backend asks the user; the task ends with the answer that reaches it."""
    asked = {"message": message, "requestedSchema": NAME_FORM} | params
    return _asking(backend, "elicitation/create", asked, origin)


def sample(
    backend: ScriptedBackend, text: str = "Hello?", *, origin: object | None = None, **params: Any
) -> "asyncio.Task[JsonObject]":
    """The backend asks for a completion."""
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    asked = {"messages": messages, "maxTokens": 10} | params
    return _asking(backend, "sampling/createMessage", asked, origin)


def _asking(
    backend: ScriptedBackend, method: str, params: JsonObject, origin: object | None
) -> "asyncio.Task[JsonObject]":
    async def ask() -> JsonObject:
        async with asyncio.timeout(BOUND):
            return await backend.link.listener.handle_request(method, params, origin)

    task = asyncio.create_task(ask())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a test need not look at the answer
    return task


async def a_call(scene: Scene, server: str = "one", **arguments: Any) -> "tuple[asyncio.Task[JsonObject], Asked]":
    """A call of `slow` that waits: the caller's side of it and the backend's."""
    call = scene.start("execute_tool", server=server, tool="slow", **arguments)
    return call, await scene.backends[server].next_asked()


async def a_task(scene: Scene, server: str = "one", **arguments: Any) -> tuple[str, Asked]:
    """A call that has become a task at once: its id, and the backend's side of it."""
    call, asked = await a_call(scene, server, timeout_ms=0, **arguments)
    await scene.clock.advance(0)
    return task_id(await call), asked


def task_id(result: JsonObject) -> str:
    """The task that a promotion reply names."""
    return str(result["structuredContent"]["proxy_task"]["task_id"])


async def open_ids(scene: Scene, kind: str = "elicitations") -> list[str]:
    """The ids of the questions that wait, oldest first."""
    await settle()
    found = await scene.value(f"get_{kind}")
    return [str(item["requestId"]) for item in found["requests"]]


async def hush(scene: Scene) -> None:
    """Take what has happened so far, so that a test sees only what comes next."""
    await settle()
    await scene.call("list_timers")


def notices(result: JsonObject) -> JsonObject:
    """The news that a reply carries behind its own content: both blocks in one object."""
    news: JsonObject = {}
    for block in result["content"][1:]:
        news |= notice_in(block.get("text", "")) or {}
    return news


events_in = told_events


async def events(scene: Scene) -> list[JsonObject]:
    """Everything that has happened and was not told yet, however many replies it takes."""
    await settle()
    found: list[JsonObject] = []
    while news := events_in(await scene.call("list_timers")):
        found += news
    return found


async def event_types(scene: Scene) -> list[str]:
    return [str(event["type"]) for event in await events(scene)]
