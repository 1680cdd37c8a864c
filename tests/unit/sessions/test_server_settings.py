import pytest

from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget
from emceepee.sessions.server_settings import read_specs, write_configuration


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
def test_whatever_may_hold_a_secret_is_said_to(target: HttpTarget | StdioTarget, holds_secrets: bool) -> None:
    spec = BackendSpec(name="mine", target=target)
    stored = write_configuration("ann", spec)
    assert stored.holds_secrets is holds_secrets
    assert read_specs([stored]) == {"mine": spec}
