import pytest

from emceepee.backends.link import FACTS_BYTES, LinkError, LinkFailure, ServerFacts


def test_a_server_may_tell_a_bounded_number_of_bytes_of_itself() -> None:
    assert ServerFacts(instructions="x" * (FACTS_BYTES - 100)).instructions
    with pytest.raises(LinkError, match="more than 1048576 bytes of itself") as caught:
        ServerFacts(capabilities={"experimental": {"x": "y" * FACTS_BYTES}})
    assert caught.value.failure is LinkFailure.PROTOCOL
