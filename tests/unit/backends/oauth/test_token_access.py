"""The token on the requests of a link: which one is sent, how a rejection is handled, and who waits for a renewal."""

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import cast

import pytest

from emceepee.backends.http1.http_client import RequestAttempts
from emceepee.backends.http1.response import HttpResponse
from emceepee.backends.link import NoAccess
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.oauth_messages import OAuthError
from emceepee.backends.oauth.proofs import new_dpop_key
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.token_access import MOST_ATTEMPTS, TokenAccess
from emceepee.backends.oauth.tokens import GrantRejected, IssuerUnavailable, TokenSet, TokenSlot, TokenType
from support.fakes.clock import FakeClock

URL = "https://tracker.test/mcp"
FROM_BEARER = 'Bearer resource_metadata="https://tracker.test/x"'
STEP_UP = 'Bearer error="insufficient_scope", scope="all"'


@dataclass
class Refusal:
    """The parts of an HTTP response that token access reads."""

    status: int = 401
    challenge: str = FROM_BEARER
    headers: dict[str, str] = field(default_factory=dict)
    is_discarded: bool = False

    @property
    def raw_headers(self) -> list[tuple[bytes, bytes]]:
        return [(b"WWW-Authenticate", self.challenge.encode())] if self.challenge else []

    def discard(self) -> None:
        self.is_discarded = True


@dataclass
class Keeper:
    """Holds the tokens and records requests for new ones."""

    slot: TokenSlot = field(default_factory=TokenSlot)
    renewal: Renewal | None = None
    asked: list[str] = field(default_factory=list)
    demands: list[Demand] = field(default_factory=list)
    trouble: str | None = None
    is_logging_in: bool = False

    async def load(self) -> None: ...

    def renew_soon(self, stale: TokenSet) -> None:
        self.asked.append("renew soon")

    async def renew(self, stale: TokenSet) -> Renewal:
        self.asked.append("renew")
        assert self.renewal is not None
        if isinstance(self.renewal, TokenSet):
            self.slot.current = self.renewal
        return self.renewal

    async def log_in(self, demand: Demand, stale: TokenSet | None) -> None:
        self.asked.append("log in")
        self.demands.append(demand)

    async def wait(self, origin: object | None, *, is_first: bool) -> None: ...


class Scene:
    def __init__(self, tokens: TokenSet | None = None, *, logs_in_on_get: bool = False) -> None:
        self.clock = FakeClock()
        self.keeper = Keeper(TokenSlot(tokens))
        self.access = TokenAccess(self.keeper, self.clock, logs_in_on_get=logs_in_on_get)
        self.attempts = RequestAttempts()

    async def send(self, method: str = "POST") -> dict[str, str]:
        return dict(await self.access.headers(method, URL, {"accept": "json"}, self.attempts))

    async def refuse(self, refusal: Refusal | None = None, method: str = "POST") -> bool:
        self.attempts.count += 1
        self.refusal = refusal or Refusal()
        return await self.access.overcome(cast(HttpResponse, self.refusal), method, self.attempts)


def tokens(clock: FakeClock, text: str = "one", *, lives: float = 3600, refresh: str | None = "r") -> TokenSet:
    now = clock.now()
    return TokenSet(
        issuer="https://as.test",
        resource=URL,
        client=OAuthClient(client_id="me"),
        token_endpoint="https://as.test/token",
        access_token=text,
        issued_at=now,
        expires_at=now + timedelta(seconds=lives),
        refresh_token=refresh,
        asked=("some",),
    )


def a_scene(*, lives: float = 3600) -> Scene:
    return Scene(tokens(FakeClock(), lives=lives))


async def test_a_stored_token_is_sent_with_each_request() -> None:
    scene = a_scene()
    assert scene.access.slot is scene.keeper.slot
    assert await scene.send() == {"accept": "json", "authorization": "Bearer one"}
    assert scene.keeper.asked == []
    assert await Scene().send() == {"accept": "json"}


async def test_a_token_that_is_due_for_renewal_is_used_until_it_is_renewed() -> None:
    """A slow authorization server delays no request whose token is still valid."""
    scene = a_scene(lives=100)
    await scene.clock.advance(85)
    assert (await scene.send())["authorization"] == "Bearer one"
    assert scene.keeper.asked == ["renew soon"]


async def test_an_expired_token_is_renewed_before_the_request() -> None:
    scene = a_scene(lives=100)
    scene.keeper.renewal = tokens(scene.clock, "two")
    await scene.clock.advance(101)
    assert (await scene.send())["authorization"] == "Bearer two"


async def test_an_expired_token_without_renewal_fails_the_request_before_it_is_sent() -> None:
    scene = a_scene(lives=100)
    scene.keeper.renewal = IssuerUnavailable("HTTP 503")
    await scene.clock.advance(101)
    with pytest.raises(NoAccess, match=r"HTTP 503.*call again") as caught:
        await scene.send()
    assert not caught.value.wants_person


async def test_a_rejected_token_is_renewed() -> None:
    scene = a_scene()
    scene.keeper.renewal = tokens(scene.clock, "two")
    await scene.send()
    assert await scene.refuse()
    assert scene.refusal.is_discarded
    assert (await scene.send())["authorization"] == "Bearer two"
    assert scene.keeper.asked == ["renew"]


async def test_a_token_that_another_task_renewed_is_used() -> None:
    scene = a_scene()
    await scene.send()
    scene.keeper.slot.current = tokens(scene.clock, "newer")
    assert await scene.refuse()
    assert scene.keeper.asked == []


async def test_an_ended_login_leads_to_a_new_login() -> None:
    scene = a_scene()
    scene.keeper.renewal = GrantRejected(OAuthError("invalid_grant", ""))
    await scene.send()
    assert await scene.refuse()
    assert scene.keeper.asked == ["renew", "log in"]


async def test_the_first_rejected_request_leads_to_a_login() -> None:
    scene = Scene()
    assert await scene.refuse()
    assert scene.keeper.demands == [Demand(resource_metadata="https://tracker.test/x")]


async def test_a_background_stream_does_not_start_a_login() -> None:
    assert not await Scene().refuse(method="GET")
    assert await Scene(logs_in_on_get=True).refuse(method="GET")


@pytest.mark.parametrize(
    "refusal", [Refusal(403, ""), Refusal(403, "Bearer"), Refusal(401, 'Basic realm="x"')], ids=str
)
async def test_a_response_that_no_token_would_change_stays_refused(refusal: Refusal) -> None:
    scene = a_scene()
    await scene.send()
    assert not await scene.refuse(refusal)
    assert scene.keeper.asked == []
    assert not refusal.is_discarded


async def test_additional_scopes_are_requested_only_once() -> None:
    scene = a_scene()
    await scene.send()
    assert await scene.refuse(Refusal(403, STEP_UP))
    assert scene.keeper.asked == ["log in"]
    assert not await scene.refuse(Refusal(403, STEP_UP.replace("all", "some")))


async def test_a_server_that_keeps_rejecting_tokens_is_given_up_after_a_few_attempts() -> None:
    scene = a_scene()
    for number in range(MOST_ATTEMPTS - 1):
        await scene.send()
        scene.keeper.slot.current = tokens(scene.clock, f"number {number}")
        assert await scene.refuse()
    await scene.send()
    scene.keeper.slot.current = tokens(scene.clock, "the last")
    assert not await scene.refuse()


async def test_a_bound_token_is_proven_with_the_nonce_of_the_server() -> None:
    bound = replace(tokens(FakeClock()), token_type=TokenType.DPOP, dpop_key=new_dpop_key())
    scene = Scene(bound)
    first = await scene.send()
    assert first["authorization"] == "DPoP one"
    wanted = Refusal(401, 'DPoP error="use_dpop_nonce"', {"dpop-nonce": "n1"})
    assert await scene.refuse(wanted)
    assert (await scene.send())["dpop"] != first["dpop"]
    assert not await scene.refuse(wanted)
    assert scene.keeper.asked == []
