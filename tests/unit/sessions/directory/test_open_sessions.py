"""Claims on the keys of sessions that are being opened, loaded, or released."""

import asyncio

from emceepee.sessions.directory.open_sessions import KeyClaim
from emceepee.state.session_key import KeyKind, SessionKey
from support.fakes.clock import settle

NAME = SessionKey("local", KeyKind.NAME, "desk")
CONNECTION = SessionKey("local", KeyKind.CONNECTION, "first")


def test_a_claim_on_several_keys_is_removed_when_it_ends() -> None:
    claims: dict[SessionKey, KeyClaim] = {}
    with KeyClaim(claims, [CONNECTION]) as claim:
        claim.extend({NAME, CONNECTION})
        assert claims == {NAME: claim, CONNECTION: claim}
    assert claims == {}


def test_a_later_claim_on_a_key_outlives_the_end_of_the_earlier_one() -> None:
    claims: dict[SessionKey, KeyClaim] = {}
    earlier, later = KeyClaim(claims, [CONNECTION]), KeyClaim(claims, [NAME, CONNECTION])
    assert (earlier.holds(CONNECTION), later.holds(CONNECTION)) == (False, True)
    earlier.end()
    assert claims == {NAME: later, CONNECTION: later}


async def test_every_waiting_request_continues_when_a_claim_ends() -> None:
    claim = KeyClaim({}, [NAME])
    waiting = [asyncio.create_task(claim.wait()) for _ in range(2)]
    await settle()
    assert not any(task.done() for task in waiting)
    claim.end()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
