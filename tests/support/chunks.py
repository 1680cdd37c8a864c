"""Split bytes into any number of pieces."""

from itertools import pairwise


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    """`data`, cut at the given places that lie inside it."""
    return [
        data[start:end] for start, end in pairwise(sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)}))
    ]
