"""A client connection as it is described to another replica."""

import pytest

from emceepee.state.client_line import ClientLine


@pytest.mark.parametrize("first", [None, 0, 17, -3])
def test_a_client_connection_can_be_described_to_another_replica(first: int | None) -> None:
    line = ClientLine(first_id=first)
    told = ClientLine.from_bytes(line.to_bytes())
    assert told is not None
    assert (told.name, told.first_id, told.carrier) == (line.name, first, None)


@pytest.mark.parametrize("data", [b"", b" 5", b"name x", b"name 1 2"])
def test_an_invalid_description_of_a_client_connection_is_rejected(data: bytes) -> None:
    assert ClientLine.from_bytes(data) is None


def test_a_client_connection_remembers_its_first_numeric_request_id() -> None:
    line = ClientLine()
    for request_id in ("probe", True, 3, 4):
        line.note(request_id)
    assert line.first_id == 3
    assert ClientLine().name != ClientLine().name
