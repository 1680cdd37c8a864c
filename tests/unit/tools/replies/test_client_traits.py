"""The known behavior of particular clients."""

import pytest

from emceepee.tools.replies.client_traits import ORDINARY, traits_of


@pytest.mark.parametrize("name", [None, "", "claude-code", "inclined", "x" * 10_000])
def test_an_unknown_client_has_ordinary_traits(name: str | None) -> None:
    assert traits_of(name) is ORDINARY


def test_a_client_is_recognized_by_any_spelling_of_its_name() -> None:
    assert traits_of("Cline").shows_both_copies
    assert traits_of("qwen-cli-mcp-client-my-server").shows_both_copies
