"""Codes let in once, cookies for a while."""

import pytest

from emceepee.guard.logins import LOGIN_SECONDS, MOST_LOGINS, Logins, cookie_name, cookies
from support.fakes.clock import FakeClock


class Lobby:
    def __init__(self, seconds: float = LOGIN_SECONDS) -> None:
        self.clock = FakeClock()
        self.logins = Logins(self.clock, seconds=seconds)
        self.codes: list[str] = []
        self.logins.on_code = self.codes.append


def test_a_code_lets_in_once_and_another_is_made_for_the_next_browser() -> None:
    lobby = Lobby()
    lobby.logins.invite("ada")
    (code,) = lobby.codes
    assert lobby.logins.redeem(code) == "ada"
    assert lobby.logins.redeem(code) is None
    assert len(lobby.codes) == 2
    assert lobby.logins.redeem(lobby.codes[-1]) == "ada"


def test_a_code_waits_for_whoever_comes_late_but_not_beside_a_newer_one() -> None:
    lobby = Lobby()
    for principal in ("ada", "bob", "ada"):
        lobby.logins.invite(principal)
    older, bobs, newer = lobby.codes
    lobby.clock.jump(7 * 86_400)
    assert [lobby.logins.redeem(code) for code in (older, bobs, newer)] == [None, "bob", "ada"]


@pytest.mark.parametrize("code", ["", "guess", "é", "\x00", "a" * 100_000])
def test_a_wrong_code_lets_nobody_in_and_makes_no_other(code: str) -> None:
    lobby = Lobby()
    lobby.logins.invite("ada")
    assert lobby.logins.redeem(code) is None
    assert len(lobby.codes) == 1


def test_codes_and_cookies_are_long_and_never_the_same() -> None:
    lobby = Lobby()
    for _ in range(50):
        lobby.logins.invite("ada")
    secrets = [lobby.logins.begin("ada") for _ in range(50)]
    assert len({*lobby.codes, *secrets}) == 100
    assert all(len(code) * 6 >= 128 for code in lobby.codes)
    assert all(len(secret) * 6 >= 256 for secret in secrets)


def test_a_login_ends_after_its_time_however_much_it_is_used() -> None:
    lobby = Lobby()
    secret = lobby.logins.begin("ada")
    for _ in range(11):
        lobby.clock.jump(3600)
        assert lobby.logins.principal_of(secret) == "ada"
    lobby.clock.jump(3600)
    assert lobby.logins.principal_of(secret) is None


def test_a_login_ends_when_it_is_ended_and_no_other_with_it() -> None:
    lobby = Lobby(seconds=3600)
    first, second = lobby.logins.begin("ada"), lobby.logins.begin("ada")
    lobby.logins.end(first)
    lobby.logins.end("never was one")
    assert [lobby.logins.principal_of(secret) for secret in (first, second)] == [None, "ada"]


def test_beyond_the_limit_the_oldest_login_is_forgotten() -> None:
    lobby = Lobby()
    oldest, *others = [lobby.logins.begin("ada") for _ in range(MOST_LOGINS + 1)]
    assert lobby.logins.principal_of(oldest) is None
    assert {lobby.logins.principal_of(secret) for secret in others} == {"ada"}


def test_no_secret_is_kept() -> None:
    lobby = Lobby()
    lobby.logins.invite("ada")
    secret = lobby.logins.begin("ada")
    assert secret not in repr(vars(lobby.logins))
    assert lobby.codes[0] not in repr(vars(lobby.logins))


@pytest.mark.parametrize(
    ("host", "name"),
    [
        (b"127.0.0.1:8080", "emceepee_8080"),
        (b"[::1]:9", "emceepee_9"),
        (b"[::1]", "emceepee"),
        (b"mcp.example", "emceepee"),
        (b"localhost:", "emceepee"),
        (b"localhost:1; x", "emceepee"),
        (b"", "emceepee"),
    ],
)
def test_the_port_is_in_the_name_of_the_cookie(host: bytes, name: str) -> None:
    assert cookie_name({b"host": host}) == name


def test_only_cookies_of_that_name_are_looked_at() -> None:
    sent = b"emceepee_8081=other; theme=dark;emceepee_8080=one ; emceepee_8080=two; emceepee_8080; =; x"
    assert cookies({b"host": b"localhost:8080", b"cookie": sent}) == ["one", "two", ""]
    assert cookies({b"host": b"localhost:8080"}) == []
