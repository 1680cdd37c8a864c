"""The router returns a decision. It neither serves nor forwards a request, and writes no response."""

import asyncio
from typing import Any, cast

import pytest

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.server.http.exchange import DirectResponse, HttpRequest
from emceepee.server.http.http_shutdown import ShutdownStage
from emceepee.server.http.request_reader import RequestBody
from emceepee.server.http.request_router import (
    FIRST_PAUSE,
    OUT_OF_REACH,
    SLACK_SECONDS,
    STOPPING,
    Forward,
    ReplicaParts,
    RequestRouter,
)
from emceepee.sessions.directory.session_storage import SessionElsewhere
from emceepee.state.replica import Replica
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.web.asgi import CONNECTION
from support.fakes.clock import FakeClock

KEY = SessionKey("local", KeyKind.NAME, "desk")
ONE, TWO = (Replica(slot=slot, epoch=slot, address="") for slot in (1, 2))
LEASE = 5.0
BODY = RequestBody()


class Scene:
    """A router and its collaborators: the scene is the directory, the storage, the finder, and the placement."""

    def __init__(self) -> None:
        self.clock, self.stage, self.storage = FakeClock(), ShutdownStage(), self
        self.is_sure, self.is_in_doubt, self.is_left = True, False, False
        self.holder: Replica | None = None
        self.others = [ONE, TWO]
        self.guesses: list[bool] = []
        self.forgotten: list[SessionKey] = []
        anything = cast(Any, self)
        parts = ReplicaParts(forwarder=anything, placement=anything, lease_seconds=LEASE)
        self.router = RequestRouter[str](anything, self, self.stage, parts)
        scope = {"extensions": {CONNECTION: self}}
        self.http = HttpRequest(scope, {}, anything, anything, CallerIdentity())

    async def find(self, http: HttpRequest, message: RequestBody) -> str | DirectResponse:
        self.guesses.append(http.may_guess)
        if self.holder is not None:
            raise SessionElsewhere(KEY, self.holder)
        return "here"

    async def confirm(self) -> None: ...

    def forget_guess(self, key: SessionKey) -> None:
        self.forgotten.append(key)

    def is_gone(self) -> bool:
        return self.is_left

    async def decide(self) -> str | Forward | DirectResponse:
        return await self.router.decide(self.http, BODY)

    async def decide_again(self, last: object) -> str | Forward | DirectResponse | None:
        assert isinstance(last, Forward)
        return await self.router.decide_again(last, self.http, BODY)


@pytest.fixture
def scene() -> Scene:
    return Scene()


async def test_a_request_is_served_by_the_endpoint_that_the_finder_returns(scene: Scene) -> None:
    assert await scene.decide() == "here"


async def test_a_request_for_a_session_elsewhere_is_forwarded_to_its_holder(scene: Scene) -> None:
    scene.holder = ONE
    give_up_at = scene.clock.monotonic() + 2 * LEASE + SLACK_SECONDS
    assert await scene.decide() == Forward(holder=ONE, key=KEY, give_up_at=give_up_at, pause=0)


async def test_after_a_failed_forward_the_finder_asks_the_store_instead_of_guessing(
    scene: Scene,
) -> None:
    scene.holder = ONE
    first = await scene.decide()
    scene.holder = TWO
    second = await scene.decide_again(first)
    assert isinstance(second, Forward)
    assert (second.holder, second.pause) == (TWO, FIRST_PAUSE)
    assert (scene.guesses, scene.forgotten) == ([True, False], [KEY])


async def test_a_holder_that_stays_unreachable_is_given_up_after_a_deadline(scene: Scene) -> None:
    scene.holder = ONE
    first = await scene.decide()
    await scene.clock.advance(2 * LEASE + SLACK_SECONDS)
    assert await scene.decide_again(first) is OUT_OF_REACH


async def test_the_router_decides_nothing_for_a_caller_that_disconnected(scene: Scene) -> None:
    scene.holder = ONE
    first = await scene.decide()
    scene.is_left = True
    assert await scene.decide_again(first) is None


async def test_a_replica_that_is_unsure_of_its_lease_refuses_requests_and_hops(scene: Scene) -> None:
    scene.is_sure, scene.is_in_doubt = False, True
    assert await scene.decide() is OUT_OF_REACH
    assert await scene.router.decide_hop(scene.http, BODY) is None
    assert scene.guesses == []


async def test_a_draining_replica_forwards_requests_to_the_other_replicas_in_turn(scene: Scene) -> None:
    scene.stage.is_draining = True
    first = await scene.decide()
    assert isinstance(first, Forward)
    assert (first.holder, first.key) == (ONE, None)
    waiting = asyncio.create_task(scene.decide_again(first))
    await scene.clock.advance(FIRST_PAUSE)
    second = await waiting
    assert isinstance(second, Forward)
    assert (second.holder, second.pause) == (TWO, 2 * FIRST_PAUSE)
    scene.stage.is_refusing = True
    waiting = asyncio.create_task(scene.decide_again(second))
    await scene.clock.advance(2 * FIRST_PAUSE)
    assert await waiting is STOPPING


async def test_a_draining_replica_without_others_refuses_requests(scene: Scene) -> None:
    scene.stage.is_draining, scene.others = True, []
    assert await scene.decide() is STOPPING
    assert await scene.router.decide_hop(scene.http, BODY) is None


async def test_a_replica_that_forwards_nothing_any_more_refuses_requests(scene: Scene) -> None:
    scene.stage.is_refusing = True
    assert await scene.decide() is STOPPING


async def test_a_forwarded_request_is_never_forwarded_again(scene: Scene) -> None:
    scene.holder = ONE
    assert await scene.router.decide_hop(scene.http, BODY) is None
    assert scene.guesses == [False]
