import json
from pathlib import Path
from typing import Any

import pytest

from emceepee.config.file_reader import parse
from emceepee.config.secret_references import References
from emceepee.config.settings import ConfigError, HttpConfig, ReplicaConfig, locate_state
from emceepee.paths import STATE_VARIABLE
from emceepee.store.location import StateLocation


@pytest.mark.parametrize(
    ("http", "principal"),
    [
        (HttpConfig(), "local"),
        (HttpConfig(tokens={"one": "ada"}), "ada"),
        (HttpConfig(tokens={"one": "ada", "two": "ada"}), "ada"),
        (HttpConfig(tokens={"one": "ada", "two": "bob"}), None),
        (HttpConfig(oauth_issuer="https://login.example"), None),
        (HttpConfig(tokens={"one": "ada"}, oauth_issuer="https://login.example"), None),
    ],
)
def test_a_sole_principal_is_known_from_the_http_settings(http: HttpConfig, principal: str | None) -> None:
    assert http.sole_principal == principal


def located(document: Any, flag: str | None, **environment: str) -> StateLocation:
    config = parse(json.dumps(document), source="file.json", references=References(environment={}))
    return locate_state(config, flag, environment, usual="sqlite:/usual.db")


@pytest.mark.parametrize(
    ("flag", "variable", "document", "path"),
    [
        ("sqlite:/flag.db", "sqlite:/variable.db", {"state": "sqlite:/file.db"}, "/flag.db"),
        (None, "sqlite:/variable.db", {"state": "sqlite:/file.db"}, "/variable.db"),
        (None, "", {"state": "sqlite:/file.db"}, "/file.db"),
        (None, "", {}, "/usual.db"),
        (None, "", {"state": ""}, "/usual.db"),
        ("memory", "sqlite:/variable.db", {"state": "sqlite:/file.db"}, None),
    ],
)
def test_the_state_location_comes_from_the_flag_then_the_variable_then_the_file(
    flag: str | None, variable: str, document: Any, path: str | None
) -> None:
    assert located(document, flag, EMCEEPEE_STATE=variable).path == (None if path is None else Path(path))


def test_the_sync_mode_of_the_state_is_read_from_the_file() -> None:
    assert not located({}, None).survives_power_loss
    assert located({"stateSync": "full"}, None).survives_power_loss


@pytest.mark.parametrize(
    ("flag", "variable", "document", "source"),
    [
        ("tape", "", {}, "--state"),
        (None, "tape", {"state": "memory"}, STATE_VARIABLE),
        (None, "", {"state": "tape"}, "state"),
    ],
)
def test_an_invalid_state_location_is_reported_with_its_source(
    flag: str | None, variable: str, document: Any, source: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        located(document, flag, EMCEEPEE_STATE=variable)
    assert str(caught.value) == f"{source}: expected memory, sqlite, sqlite:PATH or redis://HOST, found 'tape'"


def test_replica_settings_are_read_from_the_command_line() -> None:
    assert ReplicaConfig.of(None, None, 7) == ReplicaConfig(slot=7)
    assert ReplicaConfig.of("10.0.0.7:9000", None, None).listen == ("10.0.0.7", 9000)
    assert ReplicaConfig.of("[fd00::7]:9000", "a,b,c", None) == ReplicaConfig(
        listen=("fd00::7", 9000), tls_files=(Path("a"), Path("b"), Path("c"))
    )


@pytest.mark.parametrize("listen", ["9000", "host", ":9000", "host:port", "0.0.0.0:9000", "[::]:9000", "host:70000"])
def test_a_replica_address_that_others_cannot_reach_is_rejected(listen: str) -> None:
    with pytest.raises(ConfigError, match="--replica-listen: expected the HOST:PORT by which"):
        ReplicaConfig.of(listen, None, None)


@pytest.mark.parametrize(("listen", "tls"), [("host:1", "cert"), ("host:1", "a,b,c,d"), (None, "cert,key")])
def test_tls_between_replicas_requires_its_files_and_an_address(listen: str | None, tls: str) -> None:
    with pytest.raises(ConfigError, match="--replica-tls: expected CERT,KEY"):
        ReplicaConfig.of(listen, tls, None)
