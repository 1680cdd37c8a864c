"""Why there is no response, or not a whole one."""


class HttpFailure(Exception):
    """No whole response could be had; the server may have acted on the request."""


class NotConnected(HttpFailure):
    """There was no connection, so nothing was sent."""


class NoResponse(HttpFailure):
    """The connection ended before a byte of the response came."""


class ResponseTooLarge(HttpFailure):
    """The body is larger than whoever reads it wants to hold."""

    def __init__(self, largest: int) -> None:
        super().__init__(f"the answer is larger than {largest} bytes")
