import pytest

from emceepee.backends.link import FACTS_BYTES, LinkError, LinkFailure, ServerFacts


def test_the_facts_that_a_server_reports_have_a_size_limit() -> None:
    assert ServerFacts(instructions="x" * (FACTS_BYTES - 100)).instructions
    with pytest.raises(LinkError, match="its description of itself exceeds 1048576 bytes") as caught:
        ServerFacts(capabilities={"experimental": {"x": "y" * FACTS_BYTES}})
    assert caught.value.failure is LinkFailure.PROTOCOL
