"""A response is written in as few pieces as possible, without waiting for data that may never arrive."""

import asyncio
from typing import Any

import pytest

from emceepee.server.http.joined_writes import joined_writes


class Wire:
    """Records the written data piece by piece."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.pieces.append(data)

    def is_closing(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def wire() -> Wire:
    return Wire()


def joined(wire: Any) -> asyncio.Transport:
    return joined_writes(wire, close=wire.close)


async def test_head_and_body_of_a_response_are_written_in_one_piece(wire: Wire) -> None:
    response = joined(wire)
    response.write(b"head ")
    response.write(b"body")
    assert wire.pieces == [b"head body"]
    response.write(b" more")
    assert wire.pieces == [b"head body", b" more"]
    await asyncio.sleep(0)
    assert len(wire.pieces) == 2


async def test_a_head_without_a_body_is_written_in_the_same_loop_turn(wire: Wire) -> None:
    """The first event of a stream may come much later than its head."""
    response = joined(wire)
    response.write(b"head")
    assert wire.pieces == []
    await asyncio.sleep(0)
    assert wire.pieces == [b"head"]
    response.write(b"event")
    assert wire.pieces == [b"head", b"event"]


async def test_a_pending_head_is_written_before_the_response_closes(wire: Wire) -> None:
    response = joined(wire)
    response.write(b"head")
    response.close()
    assert (wire.pieces, wire.is_closed, response.is_closing()) == ([b"head"], True, True)
    await asyncio.sleep(0)
    assert wire.pieces == [b"head"]


async def test_nothing_is_written_to_a_caller_that_disconnected(wire: Wire) -> None:
    response = joined(wire)
    response.write(b"head")
    wire.close()
    await asyncio.sleep(0)
    assert wire.pieces == []
