"""Any change, reordering, omission, or addition in a framed body is detected before the data is used."""

import pytest

from emceepee.replicas.response_frames import (
    FRAME_BYTES,
    HEAD_BYTES,
    LENGTH_BYTES,
    FrameReader,
    FrameWriter,
    ResponseChanged,
    framed_length,
)

KEY = b"k" * 32
EVENTS = [b"data: 1\n\n", b"data: 2\n\n", b"data: 3\n\n"]


def framed(*parts: bytes, key: bytes = KEY) -> list[bytes]:
    """Return each part in its own frame, followed by the last frame."""
    writer = FrameWriter(key)
    return [*(writer.write(part) for part in parts), writer.write(b"", is_last=True)]


def read(data: bytes, *, piece: int = 1 << 20) -> tuple[bytes, bool]:
    """Return the body, and whether it is complete."""
    reader = FrameReader(KEY)
    body = b"".join(reader.feed(data[at : at + piece]) for at in range(0, len(data), piece))
    return body, reader.is_over


@pytest.mark.parametrize("size", [0, 1, FRAME_BYTES - 1, FRAME_BYTES, FRAME_BYTES + 1, 3 * FRAME_BYTES + 7])
@pytest.mark.parametrize("piece", [19, 20, 21, 50_000, FRAME_BYTES + HEAD_BYTES, 1 << 20])
def test_a_framed_body_survives_any_chunk_sizes(size: int, piece: int) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    data = FrameWriter(KEY).write(body, is_last=True)
    assert len(data) == framed_length(size)
    assert read(data, piece=piece) == (body, True)


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_framed_events_arrive_one_by_one(piece: int) -> None:
    assert read(b"".join(framed(*EVENTS)), piece=piece) == (b"".join(EVENTS), True)
    reader = FrameReader(KEY)
    assert [reader.feed(frame) for frame in framed(*EVENTS)] == [*EVENTS, b""]


def test_a_changed_byte_in_a_framed_body_is_detected() -> None:
    data = b"".join(framed(*EVENTS))
    for position in range(len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        try:
            body, is_whole = read(bytes(changed))
        except ResponseChanged:
            continue
        assert not is_whole, f"with another byte {position}"
        assert b"".join(EVENTS).startswith(body)


@pytest.mark.parametrize(
    "order", [[1, 0, 2, 3], [1, 2, 3], [0, 0, 1, 2, 3], [0, 1, 3], [3], [0, 1, 2, 3, 3], [0, 1, 2, 3, 0]]
)
def test_moved_omitted_or_repeated_frames_are_detected(order: list[int]) -> None:
    frames = framed(*EVENTS)
    with pytest.raises(ResponseChanged):
        read(b"".join(frames[number] for number in order))


def test_a_truncated_framed_body_is_never_complete() -> None:
    data = b"".join(framed(*EVENTS))
    for size in range(len(data)):
        body, is_whole = read(data[:size])
        assert not is_whole
        assert b"".join(EVENTS).startswith(body)


def test_frames_of_another_response_are_rejected() -> None:
    with pytest.raises(ResponseChanged):
        read(framed(*EVENTS, key=b"x" * 32)[0])


@pytest.mark.parametrize("size", [FRAME_BYTES + 1, (1 << 32) - 1])
def test_a_frame_that_is_too_large_is_rejected_at_once(size: int) -> None:
    with pytest.raises(ResponseChanged, match="no such frame"):
        read(size.to_bytes(LENGTH_BYTES) + bytes(HEAD_BYTES))
