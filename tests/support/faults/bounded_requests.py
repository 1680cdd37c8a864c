"""Requests to processes under faults. Each has a bound, and how it ended is counted."""

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

import aiohttp

from support.callers.http_process import EventReader, HttpCaller
from support.callers.restartable_process import RestartableProcess
from support.faults.findings import Rule
from support.faults.timeline import Span, moment
from support.faults.world import World

Got = TypeVar("Got")
LOOK_EVERY = 0.25  # seconds: whether the bound of a request that waits is over
JUST_BEFORE = 0.2  # seconds: a connection that ends is seen by its caller before the fault is known to have begun
LOST = (aiohttp.ClientError, ConnectionError)
MAY_HAVE_RUN = re.compile("may have run|restarted while|stop|shutting down|shuts down")


class Unanswered(Exception):
    """There was no answer, or one that says to ask again: the caller goes on without it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The message that answered a request, and when."""

    message: dict[str, Any]
    asked: Span
    process: int


async def send(
    world: World, replica: RestartableProcess, caller: HttpCaller, params: dict[str, Any], *, own: float
) -> Answer:
    """Call a tool of that process. The call itself may take `own` seconds. Raises: Unanswered."""
    began, number = moment(), world.number_of(replica)
    what = f"{params['name']} {params['arguments']}"
    try:
        status, headers, message = await within_bound(world, replica, _exchange(caller, params), own=own, what=what)
    except Unanswered as error:
        world.note(number, Span(began, moment()), what, f"unanswered: {error}")
        raise
    asked = Span(began, moment())
    world.note(number, asked, what, f"{status} {message}")
    _check_time(world, number, asked, own)
    if status in (404, 503):
        _hear_refusal(world, number, status, headers, message.get("error"), asked)
    if "error" in message:
        is_clear = MAY_HAVE_RUN.search(message["error"]["message"])
        if not is_clear:
            text = f"{params['name']} at process {number} in {asked.began:.3f}-{asked.ended:.3f}"
            world.findings.add(Rule.RIGHT_ANSWERS, f"{text}: {status} {message['error']}")
        world.counts["answers that say that a process was lost"] += 1
        _require_faults(world, number, asked, f"{message['error']}")
        raise Unanswered(message["error"]["message"])
    return Answer(message, asked, number)


async def within_bound(
    world: World,
    replica: RestartableProcess,
    request: Coroutine[Any, Any, Got],
    *,
    own: float,
    what: str,
    is_resumed: bool = False,
) -> Got:
    """Return the answer. A request to a paused process may be abandoned. Raises: Unanswered.

    A stream with `is_resumed` ends when the session moves to another process, and is then resumed.
    """
    began, number = moment(), world.number_of(replica)
    sending = asyncio.create_task(request)
    try:
        while not sending.done():
            await asyncio.wait({sending}, timeout=LOOK_EVERY)
            waited = Span(began, moment())
            stood_still = world.timeline.seconds_paused(number, waited)
            if sending.done():
                break
            if stood_still > world.patience and world.timeline.is_paused(number):
                # Only now: it cannot answer in this very moment, and what it answers later is not read.
                world.counts["requests given up at a process that stands still"] += 1
                raise Unanswered("it stands still")
            if waited.ended - waited.began - stood_still - world.timeline.late(waited) > own + world.bound:
                text = f"process {number} did not answer {what} in {began:.3f}-{waited.ended:.3f}"
                world.findings.add(Rule.ANSWERED, text)
                raise Unanswered(text)
        return sending.result()
    except LOST as error:
        ended = Span(began - JUST_BEFORE, moment())
        if not (is_resumed and world.timeline.unclean(world.timeline.before(ended, world.felt))):
            _hear_of_an_end(world, number, ended, f"{what}: {error!r}")
        raise Unanswered(str(error)) from error
    finally:
        sending.cancel()
        await asyncio.wait({sending})


async def _exchange(caller: HttpCaller, params: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any]]:
    async with caller.post("tools/call", params) as response:
        headers = dict(response.headers)
        if response.content_type == "text/event-stream":
            return response.status, headers, await last_message(EventReader(response))
        if response.content_type != "application/json":
            return response.status, headers, {"error": {"message": await response.text()}}
        return response.status, headers, dict(await response.json())


async def last_message(stream: EventReader) -> dict[str, Any]:
    """The answer at the end of a stream. Raises: ClientError if it was cut before."""
    last = None
    while (event := await stream.next()) is not None:
        last = event.message or last
    if last is None or not ({"result", "error"} & last.keys()):
        raise aiohttp.ClientPayloadError("it ended without an answer")
    return last


async def open_connection(world: World, process: RestartableProcess, *, client: str) -> tuple[HttpCaller, Span]:
    """A new session of the handshake era. Raises: Unanswered."""
    began, number = moment(), world.number_of(process)
    try:
        caller = await within_bound(
            world, process, process.caller(client=client, **world.headers), own=0, what="initialize"
        )
    except AssertionError as error:
        _require_faults(world, number, Span(began, moment()), f"no session was opened: {error}")
        raise Unanswered(str(error)) from error
    return caller, Span(began, moment())


async def refuse(world: World, process: RestartableProcess, response: aiohttp.ClientResponse, began: float) -> None:
    """Check a refusal. Raises: Unanswered if it asks for a retry, or reports a lost process or an unknown session."""
    if response.status in (404, 502, 503):
        said, number = await response.text(), world.number_of(process)
        _hear_refusal(world, number, response.status, dict(response.headers), said, Span(began, moment()))


def _hear_refusal(world: World, number: int, status: int, headers: dict[str, str], said: object, asked: Span) -> None:
    """Raises: Unanswered."""
    text = f"{status} {said} at {asked.ended:.3f}"
    if status == 404:
        world.findings.add(Rule.SESSIONS_KEPT, text)
    elif status == 502:
        world.counts["answers that say that a process was lost"] += 1
        _require_faults(world, number, asked, text)
    else:
        has_advice = "retry-after" in {name.lower() for name in headers}
        world.findings.require(has_advice, Rule.RIGHT_ANSWERS, f"no Retry-After: {text}")
        world.counts["requests that are asked to retry"] += 1
        _require_faults(world, number, asked, text)
    raise Unanswered(text)


def hear_of_a_loss(world: World, answer: Answer, text: str) -> None:
    """The process that the request was passed on to was lost with it. Raises: Unanswered."""
    world.counts["answers that say that a process was lost"] += 1
    _require_faults(world, answer.process, answer.asked, text)
    raise Unanswered(text)


def _hear_of_an_end(world: World, number: int, asked: Span, what: str) -> None:
    """A connection may end with the process that it leads to, and not with another."""
    world.counts["connections that ended with a process"] += 1
    if not world.timeline.of(number, asked):
        text = f"process {number}, {what} in {asked.began:.3f}-{asked.ended:.3f}"
        world.findings.add(Rule.ANSWERED, f"the connection to a live process ended: {text}")


def _check_time(world: World, number: int, asked: Span, own: float) -> None:
    took = asked.ended - asked.began - world.timeline.late(asked)
    world.slowest = max(world.slowest, took - own)
    if took - own > world.at_once:
        _require_faults(world, number, asked, f"an answer took {took:.2f} s until {asked.ended:.3f}")


def _require_faults(world: World, number: int, asked: Span, text: str) -> None:
    """Nobody is turned away, and nobody waits, unless there is a fault, or was one that is still felt.

    But for a request that reached a process just when it was stopped: there a balancer asks the next one.
    """
    felt = world.timeline.before(asked, world.felt)
    if not world.timeline.unclean(felt) and not world.timeline.of(number, asked):
        world.findings.add(Rule.SMOOTH_STOPS, f"{text}; {world.timeline.meeting(felt)}")
