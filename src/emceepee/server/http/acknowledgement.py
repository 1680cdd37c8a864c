"""Whether a caller's system has acknowledged a response, and closing a connection once it has.

A system may wait 40 ms or more before it acknowledges data, and from another machine the acknowledgement takes a round
trip. A server that closes right after a response would therefore find unacknowledged bytes although the caller is about
to read them.
"""

import fcntl
import socket
import struct
import termios
from asyncio import AbstractEventLoop, BaseTransport, Transport

CHECK_SECONDS = 0.05  # about as long as a system puts an acknowledgement off
MOST_CHECKS = 20  # a second in all: also for one that is far away and lost a packet


def is_unread(transport: BaseTransport) -> bool:
    """Return whether bytes of the response are unacknowledged. Linux reports them even after a reset."""
    return unacknowledged_bytes(transport) > 0


def unacknowledged_bytes(transport: BaseTransport) -> int:
    """Return how many bytes this system has sent, or holds to send, that the caller's has not acknowledged."""
    sock: socket.socket = transport.get_extra_info("socket")
    try:
        waiting = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    except OSError:
        return 0
    return int(struct.unpack("i", waiting)[0])


def close_when_acknowledged(transport: Transport, loop: AbstractEventLoop) -> None:
    """Close at once if all was acknowledged; else say that nothing more comes, and close when it is, or will not be."""
    if not _is_on_its_way(transport):
        transport.close()
        return
    if transport.can_write_eof():  # from now on, this too has to be acknowledged
        transport.write_eof()
    loop.call_later(CHECK_SECONDS, _check, transport, loop, MOST_CHECKS)


def _check(transport: Transport, loop: AbstractEventLoop, checks_left: int) -> None:
    if transport.is_closing():  # by the caller
        return
    if transport.get_write_buffer_size():  # a slow reader, for whom the connection itself has a limit
        loop.call_later(CHECK_SECONDS, _check, transport, loop, checks_left)
    elif checks_left and is_unread(transport):
        loop.call_later(CHECK_SECONDS, _check, transport, loop, checks_left - 1)
    else:
        transport.close()


def _is_on_its_way(transport: Transport) -> bool:
    return bool(transport.get_write_buffer_size()) or is_unread(transport)
