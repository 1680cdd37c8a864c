"""A feed is split into its frames for any chunks of the network."""

import pytest
from hypothesis import given
from hypothesis.strategies import binary, integers, lists

from emceepee.console import feed_frames as frames
from emceepee.console.feed_frames import FrameSplitter, gone_frame, make_frame, parse_frame
from emceepee.web.streams import PING

FEED = [make_frame("hello", {"now": 1.5}), gone_frame("s"), make_frame("logs", {"logs": [{"data": "two\n\nlines"}]})]


def test_a_feed_frame_survives_a_round_trip() -> None:
    assert [parse_frame(frame.encoded) for frame in FEED] == FEED


@given(lists(integers(min_value=1, max_value=30), min_size=1))
def test_a_feed_is_split_into_the_same_frames_for_any_chunk_sizes(sizes: list[int]) -> None:
    whole = PING.join([b"", *(frame.encoded for frame in FEED), b""])
    splitter, found, at = FrameSplitter(), list[bytes](), 0
    while at < len(whole):
        for size in sizes:
            found += splitter.split(whole[at : at + size])
            at += size
    assert found == [frame.encoded for frame in FEED]


@pytest.mark.parametrize("bad", [b"\n\n", b"event: session\ndata: [1]\n\n", b"event: session\ndata: {\n\n"])
def test_a_malformed_feed_frame_is_rejected(bad: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_frame(bad)


@given(binary())
def test_arbitrary_bytes_do_not_break_the_frame_splitter(data: bytes) -> None:
    for frame in FrameSplitter().split(data):
        assert frame.endswith(b"\n\n")


def test_a_feed_frame_without_an_end_is_limited_in_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "LARGEST_FRAME", 100)
    splitter = FrameSplitter()
    splitter.split(b"x" * 100)
    with pytest.raises(ValueError, match="too large"):
        splitter.split(b"x")
