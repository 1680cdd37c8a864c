"""How a request ends."""

import asyncio

from emceepee.tools.request_context import RequestContext


async def test_a_detached_request_without_a_call_is_cancelled() -> None:
    context = RequestContext()
    context.task = asyncio.create_task(asyncio.Event().wait())
    context.detach()
    await asyncio.wait({context.task}, timeout=5)
    assert context.task.cancelled()
