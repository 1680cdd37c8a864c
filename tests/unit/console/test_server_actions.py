"""The settings of a server as they are shown to a person."""

from emceepee.backends.spec import BackendSpec, HttpTarget, StdioTarget
from emceepee.console.server_actions import masked_entry


def test_a_program_is_shown_without_its_environment_and_secret_arguments() -> None:
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
            "https://***@h.example/?a=***",
            "",
        ],
        "env": {"HOME": "***", "TOKEN": "***"},
        "cwd": "/work",
        "mode": "auto",
    }


def test_a_masked_part_of_a_server_setting_is_marked_and_cannot_be_saved() -> None:
    target = HttpTarget(url="https://bob:pw@h.example/mcp")
    shown = masked_entry(BackendSpec(name="web", target=target, description="As in https://ann:pw@wiki.example"))
    assert (shown["url"], shown["description"]) == ("https://***@h.example/mcp", "As in https://***@wiki.example")
    program = StdioTarget(command="mcp-sql", args=("postgresql://u:p@db", '{ "note": "no secret" }'))
    assert masked_entry(BackendSpec(name="sql", target=program))["args"] == [
        "postgresql://***@db",
        '{ "note": "no secret" }',
    ]
