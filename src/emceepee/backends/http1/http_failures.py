"""The errors of requests without a complete response."""


class HttpFailure(Exception):
    """No complete response arrived. The server may have acted on the request."""


class NotConnected(HttpFailure):
    """No connection could be opened, so nothing was sent."""


class NoResponse(HttpFailure):
    """The connection ended before the first byte of the response."""


class ResponseTooLarge(HttpFailure):
    """The body exceeds the reader's limit."""

    def __init__(self, largest: int) -> None:
        super().__init__(f"the answer is larger than {largest} bytes")
