"""The messages of a feed: written as server-sent events, and parsed when they come from another replica."""

from typing import NamedTuple

from emceepee.wire.codec import decode, encode
from emceepee.wire.json_types import JsonObject

LARGEST_FRAME = 64 << 20  # bytes; the full state of one session is the largest frame
_END = b"\n\n"


class Frame(NamedTuple):
    """One message; `encoded` contains all of it."""

    name: str
    data: JsonObject
    encoded: bytes


def make_frame(name: str, data: JsonObject) -> Frame:
    return Frame(name, data, b"event: %s\ndata: %s\n\n" % (name.encode(), encode(data)))


def gone_frame(session_id: str) -> Frame:
    return make_frame("session_gone", {"id": session_id})


def parse_frame(encoded: bytes) -> Frame:
    """Parse a frame of `make_frame`. Raises: ValueError."""
    name, _, data = encoded.partition(b"\n")
    value = decode(data.removeprefix(b"data: "))
    if not isinstance(value, dict):
        raise ValueError("a frame holds an object")
    return Frame(name.removeprefix(b"event: ").decode(), value, encoded)


class FrameSplitter:
    """Splits a feed, which arrives in pieces of any size, into frames. Pings are dropped."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def split(self, piece: bytes) -> list[bytes]:
        """Return the frames that end in this piece. Raises: ValueError if one has no end."""
        searched = max(len(self._rest) - 1, 0)  # earlier bytes were searched before
        self._rest += piece
        frames, start = [], 0
        while (end := self._rest.find(_END, max(searched, start))) >= 0:
            frame = bytes(self._rest[start : end + len(_END)])
            start = end + len(_END)
            if not frame.startswith(b":"):
                frames.append(frame)
        del self._rest[:start]
        if len(self._rest) > LARGEST_FRAME:
            raise ValueError("the frame is too large")
        return frames
