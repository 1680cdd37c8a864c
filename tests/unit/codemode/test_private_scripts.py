import pytest

from emceepee.codemode.private_scripts import gives_answers, without_literals


@pytest.mark.parametrize(
    ("code", "is_private"),
    [
        ('await mcp.tool("respond_to_elicitation", answer)', True),
        ("tool = 'respond_to_sampling'  # later", True),
        ("await mcp.tool('get_elicitations')", False),
        ("respond_to = 1", False),
    ],
)
def test_a_script_is_private_if_its_source_names_an_answering_tool(code: str, is_private: bool) -> None:
    assert gives_answers(code) is is_private


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ('Expected `int`, found `Literal["secret"]`', "Expected `int`, found `Literal[…]`"),
        ("found `list[Literal['a', 'b']] | Literal[7]`", "found `list[Literal[…]] | Literal[…]`"),
        ('found `Literal["a]b\\"c"]` here', "found `Literal[…]` here"),
        ('found `Literal["cut of', "found `Literal[…]"),
    ],
)
def test_literals_of_a_script_are_removed_from_type_check_messages(message: str, shown: str) -> None:
    assert without_literals(message) == shown
