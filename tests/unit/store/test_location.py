from pathlib import Path

import pytest

from emceepee.store.location import KEY_VARIABLE, BadLocation, StateLocation, parse_location, usual_path
from emceepee.store.redis.connection.redis_address import parse_address

HOME = {"HOME": "/home/anna"}


def test_memory_is_no_place() -> None:
    assert parse_location("memory", {**HOME, KEY_VARIABLE: "a key"}) == StateLocation()


def test_a_file_is_taken_as_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.chdir("/")
    assert parse_location("sqlite:/srv/state.db", {}) == StateLocation(path=Path("/srv/state.db"))
    assert parse_location("sqlite:~/state.db", {}) == StateLocation(path=Path("/home/anna/state.db"))
    assert parse_location("sqlite:here.db", {}) == StateLocation(path=Path("/here.db"))
    assert parse_location("sqlite:/odd:name.db", {}) == StateLocation(path=Path("/odd:name.db"))


def test_the_key_and_the_sync_belong_to_a_file() -> None:
    location = parse_location("sqlite:/srv/state.db", {KEY_VARIABLE: "a key"}, sync="full")
    assert location == StateLocation(path=Path("/srv/state.db"), survives_power_loss=True, key="a key")
    assert "a key" not in repr(location)
    assert parse_location("sqlite:/srv/state.db", {KEY_VARIABLE: ""}).key is None


def test_redis_is_a_url_and_the_key_that_all_replicas_need() -> None:
    location = parse_location("redis://:s3cret@host/1", {KEY_VARIABLE: "a key"}, sync="full")
    assert location == StateLocation(redis=parse_address("redis://:s3cret@host/1"), key="a key")
    assert "s3cret" not in repr(location)
    assert not location.is_memory
    assert parse_location("memory", {}).is_memory


def test_a_url_with_a_mistake_is_reported_without_its_password() -> None:
    for text in ("redis//:s3cret@host", "postgres://anna:s3cret@host", "redis://:s3cret@host?no=1"):
        with pytest.raises(BadLocation) as caught:
            parse_location(text, {})
        assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "platform", "path"),
    [
        (HOME, "linux", "/home/anna/.local/state/emceepee/state.db"),
        (HOME, "darwin", "/home/anna/Library/Application Support/emceepee/state.db"),
        (HOME | {"XDG_STATE_HOME": "/var/anna"}, "linux", "/var/anna/emceepee/state.db"),
        (HOME | {"XDG_STATE_HOME": "/var/anna"}, "darwin", "/var/anna/emceepee/state.db"),
        (HOME | {"XDG_STATE_HOME": "not/absolute"}, "linux", "/home/anna/.local/state/emceepee/state.db"),
        (HOME | {"XDG_STATE_HOME": ""}, "linux", "/home/anna/.local/state/emceepee/state.db"),
    ],
)
def test_the_usual_place_is_that_of_the_platform(environment: dict[str, str], platform: str, path: str) -> None:
    assert usual_path(environment, platform) == Path(path)


@pytest.mark.parametrize("text", ["redis:host", "postgres", "SQLITE", "memory:x", "/srv/state.db", ":x"])
def test_anything_else_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(BadLocation, match="expected memory, sqlite, sqlite:PATH or redis://HOST, found") as caught:
        parse_location(text, HOME)
    assert text in str(caught.value)


def test_without_a_home_the_file_has_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(BadLocation, match="no home directory; name a file with sqlite:PATH, or say memory"):
        parse_location("sqlite", {})
    with pytest.raises(BadLocation, match="no home directory"):
        parse_location("sqlite:~nobody-of-that-name/state.db", {})
