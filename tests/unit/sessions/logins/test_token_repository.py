"""One refresh at a time, in a process and across processes, and the tokens after a failure."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import pytest

from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.oauth_messages import OAuthError
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.tokens import GrantRejected, IssuerUnavailable, TokenRefused, TokenSet
from emceepee.sessions.logins.token_repository import LOCK_SECONDS, LOOK_AGAIN, PAUSE_AFTER_TROUBLE, TokenRepository
from emceepee.sessions.secret_records import TOKENS, SecretRecords, ServerKey
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import NoKey, StoreUnavailable
from support.fakes.clock import START, FakeClock, settle

T = TypeVar("T")
KEY = ServerKey("alice", "tracker", "https://mcp.example/mcp")
INVALID = GrantRejected(OAuthError("invalid_grant"))


def tokens(number: int = 0, *, at: datetime = START) -> TokenSet:
    return TokenSet(
        issuer="https://login.example",
        resource="https://mcp.example/mcp",
        client=OAuthClient(client_id="me"),
        token_endpoint="https://login.example/token",
        access_token=f"access-{number}",
        refresh_token=f"refresh-{number}",
        issued_at=at,
        expires_at=at + timedelta(hours=1),
    )


@dataclass
class Issuer:
    """Accepts each refresh token once, and answers when `go_on` is set."""

    clock: FakeClock
    used: list[str] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    answer: Renewal | None = None

    async def renew(self, old: TokenSet) -> Renewal:
        assert old.refresh_token is not None
        if old.refresh_token in self.used:
            return INVALID
        self.used.append(old.refresh_token)
        await self.go_on.wait()
        if self.answer is not None:
            self.used.remove(old.refresh_token)
            return self.answer
        return tokens(len(self.used), at=self.clock.now())


class FailingStore(MemoryStore):
    """A store that fails on request."""

    is_down = False
    is_keyless = False

    async def put_secret(self, principal: str, name: str, data: bytes, *, revision: int) -> int | None:
        if self.is_keyless:
            raise NoKey("There is no key.")
        self._check()
        return await super().put_secret(principal, name, data, revision=revision)

    async def lock(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        self._check()
        return await super().lock(name, holder, now=now, until=until)

    def _check(self) -> None:
        if self.is_down:
            raise StoreUnavailable("The disk is full.")


@dataclass
class Place:
    """Processes that share a store and a clock."""

    clock: FakeClock = field(default_factory=FakeClock)
    store: FailingStore = field(default_factory=FailingStore)

    def process(self, store: MemoryStore | None = None) -> TokenRepository:
        return TokenRepository(SecretRecords(store or self.store, self.clock), self.clock)

    def another(self) -> TokenRepository:
        return self.process(self.store.another_process())

    async def pass_time_until(self, done: "asyncio.Future[T]") -> T:
        for _ in range(2000):
            await settle()
            if done.done():
                return done.result()
            await self.clock.advance(0.05)
        raise AssertionError("it did not end")


@pytest.fixture
def place() -> Place:
    return Place()


@pytest.fixture
def issuer(place: Place) -> Issuer:
    made = Issuer(place.clock)
    made.go_on.set()
    return made


def start(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    return asyncio.ensure_future(work)


async def test_tokens_are_stored_per_principal_server_and_url(place: Place) -> None:
    await place.process().save(KEY, tokens())
    other = place.another()
    assert await other.load(KEY) == tokens()
    for key in (
        replace(KEY, principal="bob"),
        replace(KEY, server="mail"),
        replace(KEY, url="https://evil.example/mcp"),
    ):
        assert await other.load(key) is None


async def test_the_name_of_a_token_record_contains_no_url() -> None:
    """Record names are not encrypted."""
    assert "canary" not in ServerKey("alice", "tracker", "https://mcp.example/?token=canary").record("tokens")


async def test_concurrent_refreshes_share_one_request_and_get_the_same_tokens(place: Place, issuer: Issuer) -> None:
    repository = place.process()
    await repository.save(KEY, tokens())
    issuer.go_on.clear()
    waiting = [start(repository.refresh(KEY, tokens(), issuer.renew)) for _ in range(5)]
    await settle()
    waiting[0].cancel()
    await settle()
    issuer.go_on.set()
    got = [await place.pass_time_until(each) for each in waiting[1:]]
    assert got == [tokens(1)] * 4
    assert issuer.used == ["refresh-0"]


async def test_of_several_processes_one_refreshes_the_tokens_and_the_others_adopt_them(
    place: Place, issuer: Issuer
) -> None:
    processes = [place.process(), *(place.another() for _ in range(7))]
    await processes[0].save(KEY, tokens())
    stale = tokens()
    for number in range(1, 6):
        issuer.go_on.clear()
        waiting = [start(each.refresh(KEY, stale, issuer.renew)) for each in processes]
        await settle()
        issuer.go_on.set()
        got = [await place.pass_time_until(each) for each in waiting]
        assert len({each.access_token for each in got if isinstance(each, TokenSet)}) == 1
        assert issuer.used == [f"refresh-{used}" for used in range(number)]
        (stale, *_) = [each for each in got if isinstance(each, TokenSet)]


async def test_newer_tokens_of_another_process_are_adopted_without_a_refresh(place: Place, issuer: Issuer) -> None:
    mine, other = place.process(), place.another()
    await mine.save(KEY, tokens())
    await other.save(KEY, tokens(7))
    assert await mine.refresh(KEY, tokens(), issuer.renew) == tokens(7)
    assert issuer.used == []


async def test_a_process_that_was_killed_while_it_held_the_refresh_lock_delays_nobody(
    place: Place, issuer: Issuer
) -> None:
    dead, alive = place.process(), place.another()
    await dead.save(KEY, tokens())
    issuer.go_on.clear()
    killed = start(dead.refresh(KEY, tokens(), issuer.renew))
    await settle()
    waiting = start(alive.refresh(KEY, tokens(), issuer.renew))
    await place.clock.advance(LOOK_AGAIN[0])
    assert not waiting.done()
    place.store.die()
    killed.cancel()
    issuer.used.clear()  # the request had not reached the authorization server
    issuer.go_on.set()
    began = place.clock.monotonic()
    got = await place.pass_time_until(waiting)
    assert isinstance(got, TokenSet)
    assert place.clock.monotonic() - began <= 1


async def test_a_suspended_process_with_the_refresh_lock_delays_others_only_until_the_lock_expires(
    place: Place, issuer: Issuer
) -> None:
    still, alive = place.process(), place.another()
    await still.save(KEY, tokens())
    issuer.go_on.clear()
    waiting = start(still.refresh(KEY, tokens(), issuer.renew))
    await settle()
    began = place.clock.monotonic()
    other = start(alive.refresh(KEY, tokens(), Issuer(place.clock, go_on=_set()).renew))
    got = await place.pass_time_until(other)
    assert isinstance(got, TokenSet)
    assert LOCK_SECONDS <= place.clock.monotonic() - began <= LOCK_SECONDS + 1
    waiting.cancel()


def _set() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@pytest.mark.parametrize("answer", [IssuerUnavailable("HTTP 503"), TokenRefused("invalid_client")])
async def test_a_failed_refresh_keeps_the_tokens_unless_the_grant_is_invalid(
    place: Place, issuer: Issuer, answer: Renewal
) -> None:
    repository = place.process()
    await repository.save(KEY, tokens())
    issuer.answer = answer
    assert await repository.refresh(KEY, tokens(), issuer.renew) == answer
    assert await repository.load(KEY) == tokens()


async def test_a_failing_authorization_server_is_not_asked_again_during_a_pause(place: Place, issuer: Issuer) -> None:
    repository = place.process()
    await repository.save(KEY, tokens())
    issuer.answer = IssuerUnavailable("HTTP 503")
    await repository.refresh(KEY, tokens(), issuer.renew)
    issuer.answer = None
    assert await repository.refresh(KEY, tokens(), issuer.renew) == IssuerUnavailable("HTTP 503")
    await place.clock.advance(PAUSE_AFTER_TROUBLE)
    assert isinstance(await repository.refresh(KEY, tokens(), issuer.renew), TokenSet)


async def test_only_invalid_grant_deletes_the_tokens(place: Place, issuer: Issuer) -> None:
    repository = place.process()
    await repository.save(KEY, tokens())
    issuer.answer = INVALID
    assert await repository.refresh(KEY, tokens(), issuer.renew) == INVALID
    assert await place.another().load(KEY) is None


async def test_a_login_during_a_refresh_is_not_undone_by_the_old_rejection(place: Place, issuer: Issuer) -> None:
    mine, other = place.process(), place.another()
    await mine.save(KEY, tokens())
    issuer.answer = INVALID
    issuer.go_on.clear()
    waiting = start(mine.refresh(KEY, tokens(), issuer.renew))
    await settle()
    await other.save(KEY, tokens(7))
    issuer.go_on.set()
    assert await place.pass_time_until(waiting) == tokens(7)
    assert await mine.load(KEY) == tokens(7)


async def test_tokens_stay_deleted_after_a_logout_during_a_refresh(place: Place, issuer: Issuer) -> None:
    mine, other = place.process(), place.another()
    await mine.save(KEY, tokens())
    issuer.go_on.clear()
    waiting = start(mine.refresh(KEY, tokens(), issuer.renew))
    await settle()
    assert await other.clear(KEY) == tokens()
    issuer.go_on.set()
    got = await place.pass_time_until(waiting)
    assert isinstance(got, GrantRejected)
    assert await mine.load(KEY) is None


async def test_refreshed_tokens_that_cannot_be_stored_are_used_and_stored_later(place: Place, issuer: Issuer) -> None:
    """The old tokens are used up, so losing the new ones would require another login."""
    repository = place.process()
    await repository.save(KEY, tokens())
    issuer.go_on.clear()
    waiting = start(repository.refresh(KEY, tokens(), issuer.renew))
    await settle()
    place.store.is_down = True
    issuer.go_on.set()
    assert await place.pass_time_until(waiting) == tokens(1)
    assert await repository.load(KEY) == tokens(1)
    assert await place.another().load(KEY) == tokens()
    place.store.is_down = False
    assert await repository.load(KEY) == tokens(1)
    assert await place.another().load(KEY) == tokens(1)


async def test_without_the_refresh_lock_no_refresh_token_is_used(place: Place, issuer: Issuer) -> None:
    repository = place.process()
    await repository.save(KEY, tokens())
    place.store.is_down = True
    assert await repository.refresh(KEY, tokens(), issuer.renew) == IssuerUnavailable("The disk is full.")
    assert issuer.used == []


async def test_without_a_state_key_tokens_stay_in_memory_and_a_warning_is_logged(place: Place, issuer: Issuer) -> None:
    place.store.is_keyless = True
    records = SecretRecords(place.store, place.clock)
    repository = TokenRepository(records, place.clock)
    before = records.problem
    await repository.save(KEY, tokens())
    assert (before, records.problem) == (None, "There is no key.")
    assert await repository.load(KEY) == tokens()
    assert await repository.refresh(KEY, tokens(), issuer.renew) == tokens(1)
    assert await repository.load(KEY) == tokens(1)
    assert await place.another().load(KEY) is None


async def test_the_tokens_of_a_principal_can_be_listed(place: Place) -> None:
    repository = place.process()
    await repository.save(KEY, tokens())
    await repository.save(replace(KEY, server="mail"), tokens(1))
    held = {KEY.record(TOKENS): tokens(), replace(KEY, server="mail").record(TOKENS): tokens(1)}
    assert await repository.tokens_of("alice") == held
    assert await repository.tokens_of("bob") == {}
