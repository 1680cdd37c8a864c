"""What a person is shown of a server's settings."""

from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.console.server_settings import masked_entry


def test_a_program_is_shown_without_its_environment_and_the_secrets_among_its_arguments() -> None:
    args = ("-m", "srv", "--token", "t0p", "--api-key=k3y", "--name=x", "--verbose", "https://u:p@h.example/?a=b", "")
    target = StdioTarget(command="python", args=args, env={"HOME": "/h", "TOKEN": "t"}, cwd="/work")
    shown = masked_entry(BackendSpec(name="prog", target=target))
    assert shown == {
        "name": "prog",
        "command": "python",
        "args": [
            "-m",
            "srv",
            "--token",
            "***",
            "--api-key=***",
            "--name=x",
            "--verbose",
            "https://h.example/?a=***",
            "",
        ],
        "env": {"HOME": "***", "TOKEN": "***"},
        "cwd": "/work",
        "mode": "auto",
    }
