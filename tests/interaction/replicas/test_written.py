"""Events count as delivered only when the forwarding replica has written them to its caller."""

import asyncio

import pytest

from emceepee.replicas import listener
from emceepee.replicas.holder_link import WRITTEN_AFTER
from support.in_process.hops import Replicas, post
from support.waiting import eventually


async def test_the_holder_is_notified_soon_after_a_response_was_written(replicas: Replicas) -> None:
    replicas.target.serve = replicas.target.serve_carrying
    await replicas.post(b"news").answer()
    assert replicas.target.written == []
    await replicas.clock.advance(WRITTEN_AFTER)
    await eventually(lambda: replicas.target.written == ["news"], what="the holder has the report")
    assert replicas.target.unread == []


async def test_the_confirmation_of_a_written_response_travels_with_the_next_request(replicas: Replicas) -> None:
    replicas.target.serve = replicas.target.serve_carrying
    caller = replicas.caller()
    for body in (b"first", b"second"):
        caller.received = b""
        caller.send(post(body))
        await caller.answer()
    assert replicas.target.written == ["first"]


async def test_responses_that_a_killed_replica_had_not_confirmed_count_as_unwritten(replicas: Replicas) -> None:
    """The replica receives the response and is killed before it confirms that it forwarded it."""
    replicas.target.serve = replicas.target.serve_carrying
    caller = replicas.post(b"news")
    await caller.answer()
    replicas.forwarder.drop(replicas.holder)  # it tells nothing any more
    replicas.listener.drop(replicas.own)
    assert (replicas.target.written, replicas.target.unread) == ([], ["news"])


async def test_a_stopping_holder_waits_for_the_confirmation_of_its_responses(replicas: Replicas) -> None:
    replicas.target.serve = replicas.target.serve_carrying
    await replicas.post(b"news").answer()
    stopping = asyncio.ensure_future(replicas.stop_holder())
    await replicas.clock.advance(WRITTEN_AFTER)
    await asyncio.wait_for(stopping, 20)
    assert replicas.target.written == ["news"]


async def test_a_stopping_holder_does_not_wait_forever_for_a_silent_replica(
    replicas: Replicas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "TOLD_SECONDS", 0.1)
    replicas.target.serve = replicas.target.serve_carrying
    await replicas.post(b"news").answer()
    await asyncio.wait_for(replicas.stop_holder(), 20)
    assert replicas.target.written == []
