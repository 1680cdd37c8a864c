import pytest

from emceepee.state.tool_filter import ToolFilter


@pytest.mark.parametrize(
    ("allowed", "denied", "tool", "permitted"),
    [
        ((), (), "anything", True),
        (("read",), (), "read", True),
        (("read",), (), "write", False),
        (("read_*", "list"), (), "read_file", True),
        (("read_*", "list"), (), "list", True),
        (("read_*",), (), "reader", False),
        ((), ("delete_*",), "delete_file", False),
        ((), ("delete_*",), "read_file", True),
        (("*",), ("write",), "write", False),
        (("write",), ("write",), "write", False),
        (("Read",), (), "read", False),
        (("read",), (), "xread", False),
    ],
)
def test_denied_beats_allowed_and_nothing_allowed_means_everything(
    allowed: tuple[str, ...], denied: tuple[str, ...], tool: str, permitted: bool
) -> None:
    assert ToolFilter(allowed, denied).permits(tool) is permitted
