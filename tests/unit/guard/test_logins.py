"""Cookies let in for a while."""

import pytest

from emceepee.guard.logins import LOGIN_SECONDS, MOST_LOGINS, Logins, cookie_name, cookies
from support.fakes.clock import FakeClock


class Lobby:
    def __init__(self, seconds: float = LOGIN_SECONDS) -> None:
        self.clock = FakeClock()
        self.logins = Logins(self.clock, seconds=seconds)


def test_cookies_are_long_and_never_the_same() -> None:
    lobby = Lobby()
    secrets = [lobby.logins.begin("ada") for _ in range(50)]
    assert len(set(secrets)) == 50
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
    secret = lobby.logins.begin("ada")
    assert secret not in repr(vars(lobby.logins))


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


def test_only_cookies_of_that_name_are_read() -> None:
    sent = b"emceepee_8081=other; theme=dark;emceepee_8080=one ; emceepee_8080=two; emceepee_8080; =; x"
    assert cookies({b"host": b"localhost:8080", b"cookie": sent}) == ["one", "two", ""]
    assert cookies({b"host": b"localhost:8080"}) == []
