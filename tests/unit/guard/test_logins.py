"""Login cookies and their lifetime."""

import pytest

from emceepee.guard.logins import LOGIN_SECONDS, MOST_LOGINS, Logins, cookie_name, cookies
from support.fakes.clock import FakeClock


class Lobby:
    def __init__(self, seconds: float = LOGIN_SECONDS) -> None:
        self.clock = FakeClock()
        self.logins = Logins(self.clock, seconds=seconds)


def test_login_secrets_are_long_and_unique() -> None:
    lobby = Lobby()
    secrets = [lobby.logins.begin("ada") for _ in range(50)]
    assert len(set(secrets)) == 50
    assert all(len(secret) * 6 >= 256 for secret in secrets)


def test_a_login_ends_after_a_fixed_time_regardless_of_use() -> None:
    lobby = Lobby()
    secret = lobby.logins.begin("ada")
    for _ in range(11):
        lobby.clock.jump(3600)
        assert lobby.logins.principal_of(secret) == "ada"
    lobby.clock.jump(3600)
    assert lobby.logins.principal_of(secret) is None


def test_ending_a_login_ends_no_other() -> None:
    lobby = Lobby(seconds=3600)
    first, second = lobby.logins.begin("ada"), lobby.logins.begin("ada")
    lobby.logins.end(first)
    lobby.logins.end("never was one")
    assert [lobby.logins.principal_of(secret) for secret in (first, second)] == [None, "ada"]


def test_the_oldest_login_is_forgotten_beyond_the_limit() -> None:
    lobby = Lobby()
    oldest, *others = [lobby.logins.begin("ada") for _ in range(MOST_LOGINS + 1)]
    assert lobby.logins.principal_of(oldest) is None
    assert {lobby.logins.principal_of(secret) for secret in others} == {"ada"}


def test_no_login_secret_is_stored() -> None:
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
def test_the_cookie_name_contains_the_port(host: bytes, name: str) -> None:
    assert cookie_name({b"host": host}) == name


def test_only_cookies_with_the_expected_name_are_read() -> None:
    sent = b"emceepee_8081=other; theme=dark;emceepee_8080=one ; emceepee_8080=two; emceepee_8080; =; x"
    assert cookies({b"host": b"localhost:8080", b"cookie": sent}) == ["one", "two", ""]
    assert cookies({b"host": b"localhost:8080"}) == []
