from dataclasses import replace

import pytest

from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget
from emceepee.sessions.servers.stored_configuration import read_specs, write_configuration


@pytest.mark.parametrize(
    ("target", "holds_secrets"),
    [
        (HttpTarget(url="https://host/mcp"), False),
        (HttpTarget(url="https://host/mcp", headers={"X-Team": "a"}), True),
        (HttpTarget(url="https://anna:pass@host/mcp"), True),
        (HttpTarget(url="https://host/mcp?token=x"), True),
        (StdioTarget(command="server"), False),
        (StdioTarget(command="server", env={"TOKEN": "x"}), True),
        (StdioTarget(command="server", args=("--token", "x")), True),
    ],
)
def test_every_setting_that_may_contain_a_secret_is_detected(
    target: HttpTarget | StdioTarget, holds_secrets: bool
) -> None:
    spec = BackendSpec(name="mine", target=target)
    stored = write_configuration("ann", spec)
    assert stored.holds_secrets is holds_secrets
    assert read_specs([stored]) == {"mine": spec}


@pytest.mark.parametrize("is_public", [True, False])
@pytest.mark.parametrize("is_guarded", [True, False])
def test_the_network_restrictions_of_a_server_are_stored_with_it(is_public: bool, is_guarded: bool) -> None:
    spec = BackendSpec(name="mine", target=HttpTarget(url="https://h/", is_public=is_public, is_guarded=is_guarded))
    read = read_specs([write_configuration("ann", spec)])["mine"].target
    assert isinstance(read, HttpTarget)
    assert (read.is_public, read.is_guarded) == (is_public, is_guarded)


def test_a_server_stored_by_an_older_version_has_guarded_logins() -> None:
    stored = write_configuration("ann", BackendSpec(name="mine", target=HttpTarget(url="https://host/mcp")))
    older = replace(stored, settings=stored.settings.replace(b',"guardedLogins":false', b""))
    assert older != stored
    read = read_specs([older])["mine"].target
    assert isinstance(read, HttpTarget)
    assert read.is_guarded
