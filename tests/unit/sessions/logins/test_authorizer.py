"""A slow authorization server is reported only while callers wait for it."""

from emceepee.sessions.logins.authorizer import SLOW_SECONDS, LoginTrouble
from support.fakes.clock import FakeClock


class Scene:
    def __init__(self) -> None:
        self.clock, self.told = FakeClock(), list[str | None]()
        self.trouble = LoginTrouble(self.clock, lambda: self.told.append(self.trouble.words))


async def test_a_fast_authorization_server_is_not_reported_as_slow() -> None:
    scene = Scene()
    with scene.trouble.while_waiting(lambda: "waiting"):
        await scene.clock.advance(SLOW_SECONDS / 2)
        assert scene.trouble.words is None
    await scene.clock.advance(SLOW_SECONDS)
    assert scene.told == []


async def test_a_slow_authorization_server_is_reported_until_it_answers() -> None:
    scene = Scene()
    scene.trouble.note("it failed before")
    with scene.trouble.while_waiting(lambda: "waiting"):
        await scene.clock.advance(SLOW_SECONDS)
        assert scene.trouble.words == "waiting"
    scene.trouble.note(None)
    scene.trouble.note(None)
    assert scene.told == ["it failed before", "waiting", "it failed before", None]


async def test_if_several_callers_wait_for_an_authorization_server_the_first_one_is_reported() -> None:
    scene = Scene()
    with scene.trouble.while_waiting(lambda: "one"), scene.trouble.while_waiting(lambda: "other"):
        await scene.clock.advance(SLOW_SECONDS)
        assert scene.trouble.words == "one"
    assert scene.trouble.words is None
