"""Whether a browser opened on this machine is visible to the person at the terminal."""

import pytest

from emceepee.cli.setup.terminal_login import has_browser


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({}, "linux", False),
        ({}, "darwin", True),
        ({"DISPLAY": "localhost:10.0", "SSH_CONNECTION": "a b"}, "linux", False),
        ({"SSH_TTY": "/dev/ttys001"}, "darwin", False),
    ],
)
def test_a_browser_is_available_with_a_display_and_not_over_ssh(
    environment: dict[str, str], platform: str, expected: bool
) -> None:
    assert has_browser(environment, platform) is expected
