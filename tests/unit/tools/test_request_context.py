"""The ends of a request."""

import asyncio

from emceepee.tools.request_context import RequestContext


async def test_a_request_that_is_detached_ends_unless_it_has_a_call() -> None:
    context = RequestContext()
    context.task = asyncio.create_task(asyncio.Event().wait())
    context.detach()
    await asyncio.wait({context.task}, timeout=5)
    assert context.task.cancelled()
