"""Checks whether a caller's system has acknowledged a response, and closes the connection once it has.

A system may delay an acknowledgement by 40 ms or more, and from another machine it takes a round trip. A server that
closes right after a response would therefore find unacknowledged bytes although the caller is about to read them.
"""

import fcntl
import socket
import struct
import termios
from asyncio import AbstractEventLoop, BaseTransport, Transport

CHECK_SECONDS = 0.05  # about as long as a system delays an acknowledgement
MOST_CHECKS = 20  # one second in all: enough for a distant caller that lost a packet


def is_unread(transport: BaseTransport) -> bool:
    """Return whether bytes of the response are unacknowledged. Linux reports them even after a reset."""
    return unacknowledged_bytes(transport) > 0


def unacknowledged_bytes(transport: BaseTransport) -> int:
    """Return how many bytes, sent or still buffered by this system, the caller's system has not acknowledged."""
    sock: socket.socket = transport.get_extra_info("socket")
    try:
        waiting = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    except OSError:
        return 0
    return int(struct.unpack("i", waiting)[0])


def close_when_acknowledged(transport: Transport, loop: AbstractEventLoop) -> None:
    """Close now if all is acknowledged. Otherwise send EOF, and close after the acknowledgement or the last check."""
    if not _is_on_its_way(transport):
        transport.close()
        return
    if transport.can_write_eof():  # the EOF must then be acknowledged as well
        transport.write_eof()
    loop.call_later(CHECK_SECONDS, _check, transport, loop, MOST_CHECKS)


def _check(transport: Transport, loop: AbstractEventLoop, checks_left: int) -> None:
    if transport.is_closing():  # by the caller
        return
    if transport.get_write_buffer_size():  # a slow reader, for which the connection has its own limit
        loop.call_later(CHECK_SECONDS, _check, transport, loop, checks_left)
    elif checks_left and is_unread(transport):
        loop.call_later(CHECK_SECONDS, _check, transport, loop, checks_left - 1)
    else:
        transport.close()


def _is_on_its_way(transport: Transport) -> bool:
    return bool(transport.get_write_buffer_size()) or is_unread(transport)
