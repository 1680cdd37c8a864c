"""What `emceepee auth` shows of strangers' words."""

from emceepee.cli.auth_outcome import printable


def test_nothing_that_a_server_says_commands_the_terminal() -> None:
    assert printable("Scopes: a\x1b[2Jb\r\x07\nnext ü") == "Scopes: a?[2Jb??\nnext ü"
