from pathlib import Path

import pytest

from emceepee.store.location import KEY_VARIABLE, BadLocation, StateLocation, parse_location, usual_path
from emceepee.store.redis.connection.redis_address import parse_address

HOME = {"HOME": "/home/anna"}


def test_memory_is_a_state_location_without_a_path() -> None:
    assert parse_location("memory", {**HOME, KEY_VARIABLE: "a key"}) == StateLocation()


def test_a_sqlite_path_is_used_as_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.chdir("/")
    assert parse_location("sqlite:/srv/state.db", {}) == StateLocation(path=Path("/srv/state.db"))
    assert parse_location("sqlite:~/state.db", {}) == StateLocation(path=Path("/home/anna/state.db"))
    assert parse_location("sqlite:here.db", {}) == StateLocation(path=Path("/here.db"))
    assert parse_location("sqlite:/odd:name.db", {}) == StateLocation(path=Path("/odd:name.db"))


def test_the_key_and_the_sync_mode_apply_to_a_sqlite_file() -> None:
    location = parse_location("sqlite:/srv/state.db", {KEY_VARIABLE: "a key"}, sync="full")
    assert location == StateLocation(path=Path("/srv/state.db"), survives_power_loss=True, key="a key")
    assert "a key" not in repr(location)
    assert parse_location("sqlite:/srv/state.db", {KEY_VARIABLE: ""}).key is None


def test_a_redis_location_consists_of_a_url_and_a_key() -> None:
    location = parse_location("redis://:s3cret@host/1", {KEY_VARIABLE: "a key"}, sync="full")
    assert location == StateLocation(redis=parse_address("redis://:s3cret@host/1"), key="a key")
    assert "s3cret" not in repr(location)
    assert not location.is_memory
    assert parse_location("memory", {}).is_memory


def test_an_invalid_state_url_is_reported_without_its_password() -> None:
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
def test_the_default_state_path_depends_on_the_platform(environment: dict[str, str], platform: str, path: str) -> None:
    assert usual_path(environment, platform) == Path(path)


@pytest.mark.parametrize("text", ["redis:host", "postgres", "SQLITE", "memory:x", "/srv/state.db", ":x"])
def test_an_unknown_state_location_is_rejected_with_the_valid_forms(text: str) -> None:
    with pytest.raises(BadLocation, match="expected memory, sqlite, sqlite:PATH or redis://HOST, found") as caught:
        parse_location(text, HOME)
    assert text in str(caught.value)


def test_without_a_home_directory_the_sqlite_path_must_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(BadLocation, match="no home directory; specify a file with sqlite:PATH, or use memory"):
        parse_location("sqlite", {})
    with pytest.raises(BadLocation, match="no home directory"):
        parse_location("sqlite:~nobody-of-that-name/state.db", {})
